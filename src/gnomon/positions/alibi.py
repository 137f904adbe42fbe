"""Attention with linear biases (ALiBi; Press et al. 2022, arXiv:2108.12409, section 3).

    score = q . k / sqrt(d) - m_h |i - j|        m_h = 2^(-8 (h+1) / H),  h = 0 .. H-1, H a power of two

For other head counts: the slopes of c = 2^floor(log2 H) heads, then every other slope of 2c heads (the authors'
published code). Perplexity stays flat past the training length; far tokens fade, so far memory is not to be expected.
"""

import math
from typing import Literal, get_args

import torch
from torch import Tensor

from gnomon.errors import BadValue, check_arguments, unknown
from gnomon.glossary import message
from gnomon.positions.base import PositionEncoding
from gnomon.shapes import Float, Int

Sides = Literal["symmetric", "split"]


class ALiBi(PositionEncoding):
    """A penalty on distance, steeper in the first heads; no parameters."""

    name = "alibi"
    paper = "Press et al. 2022, arXiv:2108.12409"
    cite = """@misc{press2022train,
      title = {Train Short, Test Long: Attention with Linear Biases Enables Input Length Extrapolation},
      author = {Press, Ofir and Smith, Noah A. and Lewis, Mike},
      year = {2022}, eprint = {2108.12409}, archivePrefix = {arXiv}, url = {https://arxiv.org/abs/2108.12409},
    }"""
    used_by = "BLOOM, MPT, Falcon-RW, Jina BERT v2"
    acts = "score"
    relative = True
    extrapolation = "flat, without far memory"

    @check_arguments
    def __init__(self, n_heads: int, causal: bool = True, sides: Sides = "symmetric") -> None:
        """n_heads: any number. sides (for bidirectional attention only): "symmetric" penalises |i - j| in every head;
        "split" lets the first half of the heads look back only and the rest look ahead only."""
        super().__init__()
        if sides not in get_args(Sides):
            raise unknown("form of bidirectional alibi", sides, get_args(Sides))
        if n_heads < 1:
            raise BadValue(f"n_heads must be at least 1, got {n_heads}")
        if sides == "split" and causal:
            raise BadValue("sides='split' is a form for bidirectional attention; a causal model looks back only")
        if sides == "split" and n_heads % 2:
            raise BadValue(f"sides='split' needs an even number of heads, got {n_heads}")
        self.n_heads, self.causal, self.sides = n_heads, causal, sides

    def heads(self) -> int:
        """How many heads there are slopes for."""
        return self.n_heads

    def slope(self, h: Tensor) -> Float:
        """m_h for head indices of any shape, in h's dtype (float32 for integers)."""
        h = h if h.is_floating_point() else h.to(torch.float32)
        n = self.n_heads // 2 if self.sides == "split" else self.n_heads
        h = h % n
        c = 2 ** (n.bit_length() - 1)  # largest power of two <= n
        return torch.exp2(torch.where(h < c, -8 * (h + 1) / c, -4 * (2 * (h - c) + 1) / c))

    def slopes(self) -> list[float]:
        """The slope of every head."""
        return [float(m) for m in self.slope(torch.arange(self.n_heads, dtype=torch.float64))]

    def bias(self, h: Tensor, q: Int, k: Int) -> Float:
        """-m_h |q - k|; with sides="split", -inf on the side that a head does not look at."""
        gap = q - k
        bias = -self.slope(h) * gap.abs()
        if self.sides == "split":
            hidden = torch.where(h < self.n_heads // 2, gap < 0, gap > 0)
            bias = torch.where(hidden, float("-inf"), bias)
        return bias

    def describe(self, trained: int | None = None) -> list[str]:
        """Slopes, and how far each head sees."""
        slopes = self.slopes()
        near, far = math.log(100) / max(slopes), math.log(100) / min(slopes)
        lines: list[str] = [
            message("encodings", "alibi", heads=self.n_heads, steepest=max(slopes), flattest=min(slopes)),
            message("encodings", "alibi_hundredth", near=near, far=far),
        ]
        if trained is None:
            return lines
        return [*lines, message("encodings", "alibi_twice", down=min(slopes) * 2 * trained)]

    def extra_repr(self) -> str:
        """Shown by print(module)."""
        return f"n_heads={self.n_heads}" + ("" if self.causal else f", sides={self.sides}")


__all__ = ["ALiBi"]
