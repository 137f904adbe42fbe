"""The decoder block of an encoder-decoder.

x = x + attention(norm(x))
x = x + cross(norm(x), memory)
x = x + ffn(norm(x))
"""

from collections.abc import Callable

from torch import nn

from gnomon.attention import Cache, CrossAttention, Memory, MultiHeadAttention
from gnomon.blocks.experts import MixtureOfExperts
from gnomon.blocks.ffn import FeedForward
from gnomon.blocks.residual import Around
from gnomon.layout import Layout
from gnomon.positions.base import PositionEncoding, Tables
from gnomon.shapes import Float
from gnomon.trace import Trace


class DecoderBlock(nn.Module):
    """Masked self-attention, cross-attention to the encoder's output, feed-forward; each in its residual."""

    def __init__(
        self,
        attention: MultiHeadAttention,
        cross: CrossAttention,
        ffn: FeedForward | MixtureOfExperts,
        around_attention: Around,
        around_cross: Around,
        around_ffn: Around,
    ) -> None:
        super().__init__()
        self.attention, self.cross, self.ffn = attention, cross, ffn
        self.around_attention, self.around_cross, self.around_ffn = around_attention, around_cross, around_ffn

    def forward(
        self,
        x: Float,
        position: PositionEncoding,
        tables: Tables,
        at: Layout,
        k_at: Layout,
        layer: int,
        cache: Cache | None,
        trace: Trace | None,
        memory: Memory,
    ) -> Float:
        """x (B, T, D) at `at`, attending to everything at `k_at` and to memory -> (B, T, D)."""
        x = self.add_sublayers(
            x,
            lambda y: self.attention(y, position, tables, at, k_at, layer, cache, trace),
            lambda y: self.cross(y, at, memory, layer, cache, trace),
        )
        if trace is not None:
            trace.add_hidden(x)
        return x

    def add_sublayers(self, x: Float, attention: Callable[[Float], Float], cross: Callable[[Float], Float]) -> Float:
        """The stream after the three sublayers, one after the other."""
        return self.around_ffn(self.around_cross(self.around_attention(x, attention), cross), self.ffn)


__all__ = ["DecoderBlock"]
