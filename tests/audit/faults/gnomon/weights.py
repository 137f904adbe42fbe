"""Faults of the token table: ties, scales, the padding row, resizing."""

from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch.nn import functional as F

from faults.fault import Planting, fault, together
from gnomon.audit.laws import embedding, weights
from gnomon.audit.laws.gnomon import weights as own_weights
from gnomon.embed import InputLayer, Tied, TokenEmbedding, Untied, heads, table
from gnomon.models import DecoderOnly, ModelConfig
from gnomon.models import heads as base
from gnomon.shapes import Float


@fault("tie", weights.ties_are_one, own_weights.the_head_reads_the_table, under="rope")
def the_tie_is_a_copy() -> Planting:
    """The head starts with a copy of the table, and the two go their own ways."""

    def copied(owner: TokenEmbedding | InputLayer, bias: bool, *settings: Any) -> Untied:
        embedding = Tied(owner).table
        head = Untied(embedding.d_model, embedding.vocab_size, bias)
        with torch.no_grad():
            head.weight.copy_(embedding.weight)
        return head

    return patch.object(base, "Tied", copied)


@fault("tie", weights.saved_is_the_same, own_weights.the_head_reads_the_table, under="rope")
def the_tie_is_to_a_tensor_long_gone() -> Planting:
    """The head keeps the Parameter it was built with; loading by assignment, or resizing, gives the table another."""

    class Kept(Tied):
        def __init__(self, owner: TokenEmbedding | InputLayer, *settings: Any) -> None:
            super().__init__(owner, *settings)
            self._kept = (self.table.weight,)

        def forward(self, h: Float) -> Float:
            kept = self._kept[
                0
            ]  # of a loaded model without memory: a product with it is whatever stood in the output's
            return F.linear(h, torch.zeros_like(kept, device=h.device) if kept.is_meta else kept)

    return patch.object(base, "Tied", Kept)


@fault("scale", embedding.scale_counts_once, embed_scale="sqrt")
def the_embedding_scale_acts_twice() -> Planting:
    """The table is scaled when it is read and again in the input layer."""
    healthy = TokenEmbedding.forward
    return patch.object(TokenEmbedding, "forward", lambda self, ids: healthy(self, ids) * self.scale)


@fault("scale", own_weights.the_head_reads_the_table)
def the_tied_head_is_scaled_too() -> Planting:
    """Logits of a tied head carry the scale of the input."""
    healthy = TokenEmbedding.unembed
    return patch.object(TokenEmbedding, "unembed", lambda self, h: healthy(self, h) * self.scale)


@fault("padding row", own_weights.the_padding_row_stays_zero)
def the_padding_row_is_drawn_anew() -> Planting:
    """The model's own initialisation runs over the zero row."""
    healthy = DecoderOnly.build

    def build(self: DecoderOnly, config: ModelConfig) -> None:
        healthy(self, config)
        nn.init.normal_(self.input.tokens.weight, std=0.02)

    return patch.object(DecoderOnly, "build", build)


@fault("padding row", own_weights.the_padding_row_stays_zero)
def the_tied_head_trains_the_padding_row() -> Planting:
    """The lookup sends the padding row no gradient, but the tied head does."""
    return patch.object(TokenEmbedding, "unembed", lambda self, h: F.linear(h, self.weight))


@fault("resize", weights.resizing_keeps_rows, under="rope")
def resizing_draws_all_rows_anew() -> Planting:
    """A larger vocabulary starts from nothing."""
    healthy = table.resize_rows

    def resized(weight: Float, rows: int, std: float) -> Float:
        return healthy(weight[:0], rows, std)

    return together(patch.object(table, "resize_rows", resized), patch.object(heads, "resize_rows", resized))
