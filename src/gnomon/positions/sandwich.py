"""Sandwich (Chi et al. 2022, arXiv:2212.10356, section 5): what sinusoids say about distance, as a bias on the score.

    score = q . k * scale + ( sum_i cos((i - j) / base^(2i/D)) - D/2 ) H / (8 h)       i = 1 .. D/2,  h = 1 .. H

The sum is the inner product of two sinusoidal vectors of width D, without what the tokens add to it: the middle of the
expansion, hence the name. It falls about as the logarithm of distance, more gently in later heads, has no parameters
and keeps some weight on far keys. D/2 is taken off so that a token's own bias is 0; a softmax cannot tell. Perplexity
stays nearly flat past the training length; beyond `base` tokens the slowest cosines turn back. A finding of research;
in use, KERPLE with its learned curves has mostly taken its place. Frequencies count from i = 1 and heads are weaker one
by one, as in NVIDIA NeMo's implementation of the paper.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from gnomon.errors import BadValue, check_arguments, must_be
from gnomon.glossary import message
from gnomon.positions.base import PositionEncoding
from gnomon.positions.frequencies import check_base
from gnomon.shapes import Float, Int


class SandwichBias(PositionEncoding):
    """A fixed bias that falls with the logarithm of distance; no parameters."""

    name = "sandwich"
    paper = "Chi et al. 2022, arXiv:2212.10356"
    cite = """@misc{chi2022dissecting,
      title = {Dissecting Transformer Length Extrapolation via the Lens of Receptive Field Analysis},
      author = {Chi, Ta-Chung and Fan, Ting-Han and Rudnicky, Alexander I. and Ramadge, Peter J.},
      year = {2022}, eprint = {2212.10356}, archivePrefix = {arXiv}, url = {https://arxiv.org/abs/2212.10356},
    }"""
    acts = "score"
    relative = True
    extrapolation = "nearly flat"

    @check_arguments
    def __init__(self, n_heads: int, width: int = 128, base: float = 10000.0) -> None:
        """width: D, of the sinusoidal vectors (the paper's 128 whatever the model's). base: of their wavelengths."""
        super().__init__()
        check_width(width)
        check_base(base)
        if n_heads < 1:
            raise BadValue(f"n_heads must be at least 1, got {n_heads}")
        self.n_heads, self.width, self.base = n_heads, width, base

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """A width and a base are right or wrong by themselves."""
        if "width" in options:
            check_width(options["width"])
        if "base" in options:
            check_base(options["base"])

    def heads(self) -> int:
        """How many heads share the curve, each with its own strength."""
        return self.n_heads

    def bias(self, h: Tensor, q: Int, k: Int) -> Float:
        """Cosines of float64 angles, one frequency at a time: fused kernels take no rows, and it saves memory."""
        dtype = h.dtype if h.is_floating_point() else torch.float32
        exact = torch.float32 if q.device.type == "mps" else torch.float64  # there is no float64 there
        gap, pairs = (q - k).to(exact), self.width // 2
        total = torch.zeros_like(gap)
        for i in range(1, pairs + 1):
            total = total + torch.cos(gap * self.base ** (-2 * i / self.width))
        return (total - pairs).to(dtype) * self.n_heads / (8 * (h.to(dtype) + 1))

    def describe(self, trained: int | None = None) -> list[str]:
        """The curve, and how far down the furthest token is."""
        lines: list[str] = [message("encodings", "sandwich", heads=self.n_heads, pairs=self.width // 2, base=self.base)]
        if trained is None:
            return lines
        furthest = self.bias(torch.arange(self.n_heads), torch.tensor(2 * trained), torch.tensor(0))
        return [*lines, message("encodings", "alibi_twice", down=-float(furthest.max()))]

    def extra_repr(self) -> str:
        """Shown by print(module)."""
        return f"n_heads={self.n_heads}, width={self.width}, base={self.base:g}"


def check_width(width: int) -> None:
    """Raise BadValue unless it is an even number above 0."""
    must_be("width", width, int)
    if width < 2 or width % 2:
        raise BadValue(f"width is that of sinusoidal vectors, an even number of at least 2; got {width}")


__all__ = ["SandwichBias"]
