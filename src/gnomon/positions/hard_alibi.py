"""Hard-ALiBi (Jelassi et al. 2024, arXiv:2402.01032, section 4.1): some heads see a few tokens, the others all of them.

    score = q . k * scale       if |i - j| <= h  or  h >= M,   else -inf         h = 0 .. H-1

Head h of the first M sees its own token and the h before it (a window of h + 1); the other heads have no position. The
windows tell neighbouring tokens apart exactly, the rest look anywhere, which is what copying needs: find the same few
tokens, take what follows. Made to copy strings many times longer than those of training; of order over more than M
tokens it knows only what causality tells, so it is weak where distance itself matters. Bidirectional windows reach to
both sides.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from gnomon.errors import BadValue, check_arguments, must_be
from gnomon.glossary import message
from gnomon.positions.base import PositionEncoding
from gnomon.shapes import Float, Int


class HardALiBi(PositionEncoding):
    """Windows of 1, 2, 3 .. tokens in the first heads, no position in the rest; no parameters."""

    name = "hard-alibi"
    paper = "Jelassi et al. 2024, arXiv:2402.01032"
    cite = """@misc{jelassi2024repeat,
      title = {Repeat After Me: Transformers are Better than State Space Models at Copying},
      author = {Jelassi, Samy and Brandfonbrener, David and Kakade, Sham M. and Malach, Eran},
      year = {2024}, eprint = {2402.01032}, archivePrefix = {arXiv}, url = {https://arxiv.org/abs/2402.01032},
    }"""
    acts = "score"
    relative = True
    extrapolation = "flat where order is local"

    @check_arguments
    def __init__(self, n_heads: int, windows: int | None = None) -> None:
        """windows: M, how many heads have one; by default half of them. The others see everything."""
        super().__init__()
        if n_heads < 1:
            raise BadValue(f"n_heads must be at least 1, got {n_heads}")
        self.n_heads = n_heads
        self.windows = (n_heads + 1) // 2 if windows is None else windows
        if not 1 <= self.windows <= n_heads:
            raise BadValue(f"windows counts the heads that have one, from 1 to n_heads={n_heads}; got {windows}")

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Less than one window is wrong whatever the model's heads."""
        must_be("windows", windows := options.get("windows"), int | None)
        if windows is not None and windows < 1:
            raise BadValue(f"windows counts the heads that have one, from 1 to n_heads; got {windows}")

    def heads(self) -> int:
        """All heads, those without a window too."""
        return self.n_heads

    def bias(self, h: Tensor, q: Int, k: Int) -> Float:
        """0 where head h sees, -inf outside its window."""
        hidden = (h < self.windows) & ((q - k).abs() > h)
        dtype = h.dtype if h.is_floating_point() else torch.float32
        return torch.zeros_like(hidden, dtype=dtype).masked_fill(hidden, float("-inf"))

    def describe(self, trained: int | None = None) -> list[str]:
        """How many heads have a window, and how far the widest sees."""
        lines: list[str] = [
            message("encodings", "hard_alibi", windows=self.windows, heads=self.n_heads),
            message("encodings", "hard_alibi_free", free=self.n_heads - self.windows),
        ]
        return lines if trained is None else [*lines, message("encodings", "hard_alibi_twice")]

    def extra_repr(self) -> str:
        """Shown by print(module)."""
        return f"n_heads={self.n_heads}, windows={self.windows}"


__all__ = ["HardALiBi"]
