"""A Transformer block without cross-attention: the decoder-only block, and the encoder block when not causal.

Block           x = x + attention(norm(x));  x = x + ffn(norm(x))
ParallelBlock   x = x + attention(norm(x)) + ffn(norm'(x))
OneNormBlock    y = norm(x);  x = x + attention(y) + ffn(y)
"""

from collections.abc import Callable

from torch import nn

from gnomon.attention.cache import Cache
from gnomon.attention.multihead import MultiHeadAttention
from gnomon.blocks.experts import MixtureOfExperts
from gnomon.blocks.ffn import FeedForward
from gnomon.blocks.residual import Around, PreNorm
from gnomon.errors import BadValue
from gnomon.layout import Layout
from gnomon.positions.base import PositionEncoding, Tables
from gnomon.shapes import Float
from gnomon.trace import Trace


class Block(nn.Module):
    """Self-attention and feed-forward, each in a residual with its norm before or after."""

    def __init__(
        self,
        attention: MultiHeadAttention,
        ffn: FeedForward | MixtureOfExperts,
        around_attention: Around,
        around_ffn: Around,
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
        x = self.add_sublayers(x, lambda y: self.attention(y, position, tables, at, k_at, layer, cache, trace))
        if trace is not None:
            trace.add_hidden(x)
        return x

    def add_sublayers(self, x: Float, attention: Callable[[Float], Float]) -> Float:
        """The stream after both sublayers, one after the other."""
        return self.around_ffn(self.around_attention(x, attention), self.ffn)


class ParallelBlock(Block):
    """Both sublayers read the same stream and add to it at once (GPT-NeoX, arXiv:2204.06745, section
    2.1)."""

    def __init__(
        self,
        attention: MultiHeadAttention,
        ffn: FeedForward | MixtureOfExperts,
        around_attention: Around,
        around_ffn: Around,
    ) -> None:
        if not (isinstance(around_attention, PreNorm) and isinstance(around_ffn, PreNorm)):
            raise BadValue("sublayers side by side add to the stream: take placement 'pre' or 'sandwich', not 'post'")
        super().__init__(attention, ffn, around_attention, around_ffn)

    def add_sublayers(self, x: Float, attention: Callable[[Float], Float]) -> Float:
        """The stream and what each of the two adds to it."""
        assert isinstance(self.around_attention, PreNorm)
        assert isinstance(self.around_ffn, PreNorm)
        return x + self.around_attention.branch(x, attention) + self.around_ffn.branch(x, self.ffn)


class OneNormBlock(ParallelBlock):
    """Both sublayers read the stream through one norm, that of attention (Wang and Komatsuzaki 2021, GPT-J; Phi,
    arXiv:2309.05463)."""

    def add_sublayers(self, x: Float, attention: Callable[[Float], Float]) -> Float:
        """The stream and what each of the two adds to it."""
        assert isinstance(self.around_attention, PreNorm)
        assert isinstance(self.around_ffn, PreNorm)
        y = self.around_attention.norm(x)
        attended = self.around_attention.scaled(self.around_attention.drop(attention(y)))
        return x + attended + self.around_ffn.branch(y, self.ffn)


__all__ = ["Block", "OneNormBlock", "ParallelBlock"]
