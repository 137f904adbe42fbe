"""Heads: what is asked of the vectors that a stack gives.

A model that writes has logits over the vocabulary, with the token table or another one. An encoder has one of these
heads, which read a Memory, so that they know which of its tokens are padding:

    tokens    h E^T                                  (B, T, V)   what stands in each place
    masked    norm(gelu(h W + b)) E^T + c            (B, T, V)   the same, as BERT asks it (arXiv:1810.04805)
    labels    drop(h) W + b                          (B, T, C)   a class for each token
    pooled    p = pool(h), or tanh(pool(h) W + b)    (B, D)      a vector for each row
    classes   drop(p) W + b                          (B, C)      a class for each row
"""

from abc import abstractmethod
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

from gnomon.attention import Memory
from gnomon.blocks.ffn import UNGATED
from gnomon.embed import InputLayer, Tied, Untied
from gnomon.errors import BadValue
from gnomon.linear import Linear
from gnomon.models.config import ModelConfig
from gnomon.models.model_settings import Pooling
from gnomon.norm import build_norm
from gnomon.shapes import Float

ACTIVATIONS: dict[str, Callable[[Float], Float]] = {**UNGATED, "tanh": torch.tanh, "identity": lambda x: x}


class Head(nn.Module):
    """Base of an encoder's heads: a Memory (B, T, D) -> an answer for each token or each row."""

    @abstractmethod
    def forward(self, memory: Memory) -> Float:
        """The answer; its shape is the head's."""

    def resize(self, vocab_size: int) -> None:
        """Follow a vocabulary of another size; only heads over the vocabulary have to."""


class TokenHead(Head):
    """Logits over the vocabulary for every token, straight from its vector."""

    def __init__(self, config: ModelConfig, layer: InputLayer) -> None:
        """With the table of `layer`, or another one where the config is not tied."""
        super().__init__()
        self.out = head_for(config, layer)

    def forward(self, memory: Memory) -> Float:
        """(B, T, D) -> (B, T, V)."""
        return self.out(memory.states)

    def resize(self, vocab_size: int) -> None:
        """Follow the vocabulary."""
        self.out.resize(vocab_size)


class MaskedHead(TokenHead):
    """The same after a layer of its own, and with a bias per token: BERT's head for masked tokens."""

    def __init__(self, config: ModelConfig, layer: InputLayer) -> None:
        """Of the model's width, with its kind of norm."""
        super().__init__(config, layer)
        self.out = head_for(config, layer, bias=True)
        width = config.d_model if config.d_input is None else config.d_input
        self.transform = linear(config.d_model, width, config.init_std, config.bias)
        self.norm = build_norm(config.norm, width, config.norm_eps)
        self.activation = config.head_activation or "gelu"

    def forward(self, memory: Memory) -> Float:
        """(B, T, D) -> (B, T, V)."""
        return self.out(self.norm(ACTIVATIONS[self.activation](self.transform(memory.states))))


class LabelHead(Head):
    """Logits over C classes for every token."""

    def __init__(self, config: ModelConfig, _: InputLayer) -> None:
        """C is the config's n_classes."""
        super().__init__()
        self.drop = nn.Dropout(config.dropout)
        self.out = linear(config.d_model, number_of_classes(config), config.init_std)

    def forward(self, memory: Memory) -> Float:
        """(B, T, D) -> (B, T, C)."""
        return self.out(self.drop(memory.states))


class PooledHead(Head):
    """One vector for every row: of its first real token or the mean of them all, then BERT's dense layer if asked."""

    def __init__(self, config: ModelConfig, _: InputLayer) -> None:
        """pooling and pooler are the config's."""
        super().__init__()
        self.pooling = config.pooling
        width = config.d_model if config.d_pooled is None else config.d_pooled
        self.pooler = linear(config.d_model, width, config.init_std) if config.pooler else None
        self.unit = config.unit
        self.activation = config.head_activation or "tanh"

    def forward(self, memory: Memory) -> Float:
        """(B, T, D) -> (B, D)."""
        return self.vector(memory)

    def vector(self, memory: Memory) -> Float:
        """(B, T, D) -> (B, D), or the width of the pooler."""
        p = self.pooled(memory)
        return F.normalize(p, dim=-1) if self.unit else p

    def pooled(self, memory: Memory) -> Float:
        """The same before its length is changed."""
        p = pool(memory, self.pooling)
        return p if self.pooler is None else ACTIVATIONS[self.activation](self.pooler(p))


class ClassHead(PooledHead):
    """Logits over C classes for every row."""

    def __init__(self, config: ModelConfig, layer: InputLayer) -> None:
        """C is the config's n_classes."""
        super().__init__(config, layer)
        self.drop = nn.Dropout(config.dropout)
        self.out = linear(config.d_model, number_of_classes(config), config.init_std)

    def forward(self, memory: Memory) -> Float:
        """(B, T, D) -> (B, C)."""
        return self.out(self.drop(self.vector(memory)))


HEADS: dict[str, Callable[[ModelConfig, InputLayer], Head]] = {
    "tokens": TokenHead,
    "masked": MaskedHead,
    "labels": LabelHead,
    "pooled": PooledHead,
    "classes": ClassHead,
}


def pool(memory: Memory, pooling: Pooling = "mean") -> Float:
    """(B, T, D) -> (B, D): of each row the first real token in time, or the mean of its real tokens.

    Padding has no part in it, on whichever side it is; a row of nothing but padding gives zeros.
    """
    states, at = memory.states, memory.at.expand(len(memory.states))
    if at.kind == "packed":
        raise BadValue("a packed row holds several documents, which would be pooled into one vector: give each a row")
    if pooling == "first":
        latest = at.step.amax(1, keepdim=True) + 1
        weights = F.one_hot(torch.where(at.real, at.step, latest).argmin(1), at.shape[1]).bool() & at.real
    else:
        weights = at.real
    kept = states.masked_fill(~weights.unsqueeze(2), 0.0)  # not times 0: padding may hold anything, even infinities
    return kept.sum(1) / weights.sum(1, keepdim=True).clamp(min=1)


def head_for(c: ModelConfig, layer: InputLayer, bias: bool = False) -> Tied | Untied:
    """Logits over the vocabulary: with the input layer's own table, or with another."""
    bias = bias or c.head_bias
    if c.tied:
        return Tied(layer, bias, c.head_scale, c.head_softcap)
    width = c.d_model if c.d_input is None or c.head != "masked" else c.d_input
    return Untied(width, c.vocab_size, bias, c.init_std, c.head_scale, c.head_softcap)


def linear(d_in: int, d_out: int, std: float, bias: bool = True) -> nn.Linear:
    """Normal weights, zero biases."""
    layer = Linear(d_in, d_out, bias)
    nn.init.normal_(layer.weight, std=std)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


def number_of_classes(config: ModelConfig) -> int:
    """C; BadValue where the config does not say."""
    if config.n_classes is None:
        raise BadValue(f"a head of {config.head} needs to know how many there are: give n_classes")
    return config.n_classes


__all__ = [
    "HEADS",
    "ClassHead",
    "Head",
    "LabelHead",
    "MaskedHead",
    "PooledHead",
    "TokenHead",
    "head_for",
    "linear",
    "pool",
]
