"""Heads: from the last hidden state to one logit per token, with the embedding's own table or with another.

`Tied` looks its table up at every call, in the embedding or in the input layer that has it. It owns nothing, so the tie
cannot be lost: loading, assigning, copying, casting, resizing or replacing the embedding is doing it to the head.
(Sharing a Parameter between two modules breaks in several of these.)
"""

from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import nn

from gnomon.embed.input import InputLayer
from gnomon.embed.table import TokenEmbedding, check_hidden, check_std, resize_rows
from gnomon.errors import BadValue, check_arguments, must_be
from gnomon.kinds import Setting
from gnomon.linear import linear
from gnomon.shapes import Float
from gnomon.stored import check_whole


@dataclass(frozen=True, kw_only=True)
class LogitSettings:
    """Logits over the vocabulary"""

    tied: Annotated[bool, Setting("the head uses the token table", source="Press and Wolf 2017, arXiv:1608.05859")] = (
        True
    )
    head_bias: Annotated[bool, Setting("a number per token is added to the logits")] = False
    head_scale: Annotated[float, Setting("what the logits are multiplied by")] = 1.0
    head_softcap: Annotated[
        float | None,
        Setting("c of c tanh(l / c), which a logit l becomes", above=0, source="Gemma 2, arXiv:2408.00118"),
    ] = None


class Tied(nn.Module):
    """logits = scale * h E^T + b, with the embedding's table E. Gradients of both uses add up in E.

    With a softcap c, logits l become c tanh(l / c) (Gemma 2, arXiv:2408.00118, section 2).
    """

    @check_arguments
    def __init__(
        self,
        table: TokenEmbedding | InputLayer,
        bias: bool = False,
        scale: float = 1.0,
        softcap: float | None = None,
    ) -> None:
        """table: the embedding; or an input layer, of which it is always the embedding that it has now.
        bias: one number per token. scale: of the logits (T5 v1.0: d_model^-0.5). softcap: of the logits."""
        super().__init__()
        # in a tuple, so that torch does not register it a second time
        self._owner: tuple[TokenEmbedding | InputLayer] = (table,)
        self.scale, self.softcap = scale, softcap
        self.bias = nn.Parameter(torch.zeros(self.table.vocab_size)) if bias else None

    @property
    def table(self) -> TokenEmbedding:
        """The embedding whose table this is."""
        owner = self._owner[0]
        return owner if isinstance(owner, TokenEmbedding) else owner.tokens

    def follow(self, old: InputLayer, new: InputLayer) -> None:
        """Take the table from `new` where it came from `old`, which has been replaced."""
        if self._owner[0] is old:
            self._owner = (new,)

    @property
    def weight(self) -> nn.Parameter:
        """The embedding's own Parameter."""
        return self.table.weight

    def __setattr__(self, name: str, value: Any) -> None:
        """Raise BadValue for another weight than the table's."""
        if name != "weight":
            super().__setattr__(name, value)
        elif value is not self.weight:
            raise BadValue(
                "a tied head has no weight of its own: set that of the embedding (model.input.tokens.weight), or give "
                "the model a head that has one, model.head = gn.Untied(d_model, vocab_size)"
            )

    def forward(self, h: Float) -> Float:
        """h (B, T, D) -> logits (B, T, V)."""
        check_hidden(h, self.table.d_model)
        logits = self.table.unembed(h if self.scale == 1.0 else h * self.scale)
        return apply_softcap(logits if self.bias is None else logits + self.bias, self.softcap)

    @torch.no_grad()
    def resize(self, vocab_size: int) -> None:
        """Follow the embedding, which is resized itself."""
        if self.bias is not None:
            self.bias = nn.Parameter(resize_rows(self.bias, vocab_size, std=0.0), self.bias.requires_grad)


class Untied(nn.Module):
    """logits = scale * h W^T + b, with a table of its own, capped as in Tied."""

    stores_weight = True  #: its weight may be kept in fewer bits, see `gnomon.stored`

    @check_arguments
    def __init__(
        self,
        d_model: int,
        vocab_size: int,
        bias: bool = False,
        std: float = 0.02,
        scale: float = 1.0,
        softcap: float | None = None,
    ) -> None:
        """std: of the initial rows. scale, softcap: of the logits."""
        super().__init__()
        check_std(std)
        if vocab_size < 1 or d_model < 1:
            raise BadValue(f"vocab_size and d_model must be at least 1, got {vocab_size} and {d_model}")
        self.std, self.scale, self.softcap = std, scale, softcap
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        self.bias = nn.Parameter(torch.zeros(vocab_size)) if bias else None
        nn.init.normal_(self.weight, std=std)

    def forward(self, h: Float) -> Float:
        """h (B, T, D) -> logits (B, T, V)."""
        check_hidden(h, self.weight.shape[1])
        return apply_softcap(linear(h if self.scale == 1.0 else h * self.scale, self.weight, self.bias), self.softcap)

    @torch.no_grad()
    def resize(self, vocab_size: int) -> None:
        """Change the number of rows; those that remain keep their bits."""
        check_whole(self)
        must_be("vocab_size", vocab_size, int)
        self.weight = nn.Parameter(resize_rows(self.weight, vocab_size, self.std), self.weight.requires_grad)
        if self.bias is not None:
            self.bias = nn.Parameter(resize_rows(self.bias, vocab_size, std=0.0), self.bias.requires_grad)


def apply_softcap(logits: Float, softcap: float | None) -> Float:
    """c tanh(logits / c), or the logits where there is no cap."""
    return logits if softcap is None else softcap * torch.tanh(logits / softcap)


__all__ = ["LogitSettings", "Tied", "Untied"]
