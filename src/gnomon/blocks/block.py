"""A Transformer block without cross-attention: the decoder-only block, and the encoder block when not causal.

x = x + attention(norm(x))
x = x + ffn(norm(x))
"""

from torch import nn

from gnomon.attention.cache import Cache
from gnomon.attention.multihead import MultiHeadAttention
from gnomon.blocks.ffn import FeedForward
from gnomon.blocks.residual import PostNorm, PreNorm
from gnomon.layout import Layout
from gnomon.positions.base import PositionEncoding, Tables
from gnomon.shapes import Float
from gnomon.trace import Trace


class Block(nn.Module):
    """Self-attention and feed-forward, each in a residual with its norm before or after."""

    def __init__(
        self,
        attention: MultiHeadAttention,
        ffn: FeedForward,
        around_attention: PreNorm | PostNorm,
        around_ffn: PreNorm | PostNorm,
    ) -> None:
        super().__init__()
        self.attention, self.ffn = attention, ffn
        self.around_attention, self.around_ffn = around_attention, around_ffn

    def forward(
        self,
        x: Float,
        position: PositionEncoding,
        tables: Tables,
        at: Layout,
        k_at: Layout,
        layer: int = 0,
        cache: Cache | None = None,
        trace: Trace | None = None,
    ) -> Float:
        """x (B, T, D) at `at`, attending to everything at `k_at` -> (B, T, D)."""
        x = self.around_attention(x, lambda y: self.attention(y, position, tables, at, k_at, layer, cache, trace))
        x = self.around_ffn(x, self.ffn)
        if trace is not None:
            trace.add_hidden(x)
        return x


__all__ = ["Block"]
