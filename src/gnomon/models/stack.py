"""Stack: blocks that share their position encodings, and the norm after them. Every architecture is made of these."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from gnomon.attention import Cache, CrossAttention, Memory, MultiHeadAttention
from gnomon.attention.multihead import MultiHeadSettings, head_width
from gnomon.blocks import (
    Around,
    Block,
    DecoderBlock,
    FeedForward,
    MixtureOfExperts,
    NoNorm,
    OneNormBlock,
    ParallelBlock,
    default_width,
    placement,
)
from gnomon.blocks.ffn import FeedForwardSettings
from gnomon.blocks.residual import AroundSettings
from gnomon.errors import BadValue
from gnomon.layout import Layout
from gnomon.models.config import ModelConfig
from gnomon.models.step import step
from gnomon.norm import build_norm
from gnomon.positions import PositionEncoding, Spec
from gnomon.settings import values_of
from gnomon.shapes import Float
from gnomon.trace import Trace


class Stack(nn.Module):
    """A layer per entry of `per_layer`, over one residual stream; with `cross` they also look at memory."""

    def __init__(self, config: ModelConfig, per_layer: Sequence[Spec], *, causal: bool, cross: bool = False) -> None:
        """per_layer: the encoding that acts in each layer's attention; equal ones become one module."""
        super().__init__()
        build = _decoder_block if cross else _block
        self._block_of, windows = config.blocks(len(per_layer)), config.windows(len(per_layer))
        first = dict(zip(reversed(self._block_of), reversed(range(len(per_layer))), strict=True))
        self.blocks = nn.ModuleList(build(config, causal, windows[first[n]], first[n]) for n in sorted(first))
        ends_in_norm = config.placement == "post"
        self.norm = nn.Identity() if ends_in_norm else build_norm(config.norm, config.d_model, config.norm_eps)
        init_linears(self.blocks, config.init_std, len(per_layer))
        chosen = list(dict.fromkeys(per_layer))
        sizes = _sizes(config, causal)
        self.positions = nn.ModuleList(spec.build(**sizes, n_layers=per_layer.count(spec)) for spec in chosen)
        for position in () if causal else self.encodings():
            _check_both_sides(position)
        self._of_layer = [chosen.index(spec) for spec in per_layer]
        self.gradient_checkpointing = False  #: in training, compute activations again instead of keeping them

    def forward(
        self,
        x: Float,
        at: Layout,
        k_at: Layout,
        cache: Cache | None = None,
        trace: Trace | None = None,
        memory: Memory | None = None,
    ) -> Float:
        """x (B, T, D) at `at` -> (B, T, D). Keys sit at `k_at`: these tokens, after those that the cache holds."""
        if trace is not None:
            trace.add_hidden(x)
        if k_at is at and not torch.compiler.is_compiling():
            at = k_at = replace(at, notes={})  # of what all layers make of it alike
        tables = [position.prepare_for(at, k_at, x.dtype) for position in self.encodings()]
        if cache is not None and trace is None:
            by = dict(zip(map(id, self.encodings()), tables, strict=True))
            y = step(self, self._layers, x, at, k_at, cache, by, memory)
            if y is not None:
                return y
        beside = () if memory is None else (memory,)
        again = self.gradient_checkpointing and self.training and cache is None and trace is None  # Chen et al. 2016
        for layer, n in enumerate(self._of_layer):
            block = self.blocks[self._block_of[layer]]
            here = self.position_of(layer).of_layer(tables[n], self._of_layer[:layer].count(n))
            arguments = (x, self.positions[n], here, at, k_at, layer, cache, trace, *beside)
            x = checkpoint(block, *arguments, use_reentrant=False) if again else block(*arguments)
        return self.norm(x)

    def _layers(self) -> list[tuple[nn.Module, PositionEncoding]]:
        """The block and the encoding of each layer."""
        return [(self.blocks[self._block_of[n]], self.position_of(n)) for n in range(self.depth)]

    @property
    def depth(self) -> int:
        """How many layers a token passes; several may share a block."""
        return len(self._of_layer)

    def encodings(self) -> Iterator[PositionEncoding]:
        """The encodings that act in attention, each once."""
        return (p for p in self.positions if isinstance(p, PositionEncoding))

    def position_of(self, layer: int) -> PositionEncoding:
        """The encoding that acts in this layer's attention ("none" where position came in at the input)."""
        return list(self.encodings())[self._of_layer[layer]]


def init_linears(module: nn.Module, std: float, n_layers: int) -> None:
    """Normal weights, zero biases; smaller where the residual stream is written (Radford et al. 2019, section 2.3)."""
    for name, part in module.named_modules():
        if isinstance(part, nn.Linear):
            into_stream = name.endswith((".out", ".down"))
            nn.init.normal_(part.weight, std=std / (2 * n_layers) ** 0.5 if into_stream else std)
            if part.bias is not None:
                nn.init.zeros_(part.bias)


def _check_both_sides(position: PositionEncoding) -> None:
    """Raise BadValue for an encoding that means nothing where tokens ahead are seen."""
    if type(position).one_sided:
        raise BadValue(
            f"{position.name} is for causal attention only, and an encoder, or a model with causal=False, looks ahead "
            "too: choose rope, t5 or alibi there"
        )
    if position.one_sided:
        raise BadValue(
            f"{position.name} was built with causal=True, so it only distinguishes past distances: "
            "drop causal=True here"
        )


def _sizes(c: ModelConfig, causal: bool) -> dict[str, Any]:
    """What an encoding's constructor may ask for."""
    d_head = head_width(c.d_model, c.n_heads, c.d_head)
    sizes = {"d_model": c.d_model, "d_head": d_head, "n_heads": c.n_heads, "causal": causal}
    return sizes if c.max_positions is None else {**sizes, "max_positions": c.max_positions}


def _block(c: ModelConfig, causal: bool, window: int | None, layer: int) -> Block:
    attention = MultiHeadAttention(
        c.d_model, c.n_heads, **values_of(MultiHeadSettings, c), causal=causal, window=window
    )
    first = _around(c) if c.first_norm or layer else _bare(c)
    if c.residual == "one norm":
        return OneNormBlock(attention, _ffn(c, layer), first, _bare(c))
    wired = ParallelBlock if c.residual == "parallel" else Block
    return wired(attention, _ffn(c, layer), first, _around(c))


def _decoder_block(c: ModelConfig, causal: bool, window: int | None, layer: int) -> DecoderBlock:
    plain = _block(c, causal, window, layer)
    cross = CrossAttention(c.d_model, c.n_heads, **values_of(MultiHeadSettings, c), causal=False)
    return DecoderBlock(plain.attention, cross, plain.ffn, plain.around_attention, _around(c), plain.around_ffn)


def _around(c: ModelConfig) -> Around:
    return placement(c.placement)(c.d_model, **values_of(AroundSettings, c))


def _bare(c: ModelConfig) -> NoNorm:
    return NoNorm(c.d_model, **values_of(AroundSettings, c))


def _ffn(c: ModelConfig, layer: int) -> FeedForward | MixtureOfExperts:
    settings = values_of(FeedForwardSettings, c)

    def plain(width: int | None) -> FeedForward:
        return FeedForward(c.d_model, **{**settings, "d_ff": width})

    if c.mixture is None or layer in c.mixture.dense_layers:
        return plain(c.d_ff)
    return MixtureOfExperts(
        c.d_model, c.mixture, default_width(c.d_model, c.gated) if c.d_ff is None else c.d_ff, plain
    )


__all__ = ["Stack", "init_linears"]
