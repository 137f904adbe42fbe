"""Faults of the token table: ties, scales, the padding row, resizing."""

from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch.nn import functional as F

from gnomon.audit.mutants.mutant import Planting, mutant, together
from gnomon.embed import InputLayer, Tied, TokenEmbedding, Untied, heads, table
from gnomon.models import DecoderOnly, ModelConfig
from gnomon.models import heads as base
from gnomon.shapes import Float


@mutant("tie", "a tie stays a tie")
def the_tie_is_a_copy() -> Planting:
    """The head starts with a copy of the table, and the two go their own ways."""

    def copied(owner: TokenEmbedding | InputLayer, bias: bool, *settings: Any) -> Untied:
        embedding = Tied(owner).table
        head = Untied(embedding.d_model, embedding.vocab_size, bias)
        with torch.no_grad():
            head.weight.copy_(embedding.weight)
        return head

    return patch.object(base, "Tied", copied)


@mutant("tie", "a tie stays a tie")
def the_tie_is_to_a_tensor_long_gone() -> Planting:
    """The head keeps the Parameter it was built with; loading by assignment, or resizing, gives the table another."""

    class Kept(Tied):
        def __init__(self, owner: TokenEmbedding | InputLayer, *settings: Any) -> None:
            super().__init__(owner, *settings)
            self._kept = (self.table.weight,)

        def forward(self, h: Float) -> Float:
            return F.linear(h, self._kept[0])

    return patch.object(base, "Tied", Kept)


@mutant("scale", "the scale counts once")
def token_vectors_are_scaled_twice() -> Planting:
    """The table is scaled when it is read and again in the input layer."""
    healthy = TokenEmbedding.forward
    return patch.object(TokenEmbedding, "forward", lambda self, ids: healthy(self, ids) * self.scale)


@mutant("scale", "the scale counts once")
def the_tied_head_is_scaled_too() -> Planting:
    """Logits of a tied head carry the scale of the input."""
    healthy = TokenEmbedding.unembed
    return patch.object(TokenEmbedding, "unembed", lambda self, h: healthy(self, h) * self.scale)


@mutant("padding row", "the padding row stays zero")
def the_padding_row_is_drawn_anew() -> Planting:
    """The model's own initialisation runs over the zero row."""
    healthy = DecoderOnly.build

    def build(self: DecoderOnly, config: ModelConfig) -> None:
        healthy(self, config)
        nn.init.normal_(self.input.tokens.weight, std=0.02)

    return patch.object(DecoderOnly, "build", build)


@mutant("padding row", "the padding row stays zero")
def the_tied_head_trains_the_padding_row() -> Planting:
    """The lookup sends the padding row no gradient, but the tied head does."""
    return patch.object(TokenEmbedding, "unembed", lambda self, h: F.linear(h, self.weight))


@mutant("resize", "resizing keeps old rows")
def resizing_draws_all_rows_anew() -> Planting:
    """A larger vocabulary starts from nothing."""
    healthy = table.resized

    def resized(weight: Float, rows: int, std: float) -> Float:
        return healthy(weight[:0], rows, std)

    return together(patch.object(table, "resized", resized), patch.object(heads, "resized", resized))
