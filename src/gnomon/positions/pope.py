"""Polar positions (PoPE; Gopalakrishnan et al. 2025, arXiv:2509.10534, section 3): what by length, where by angle.

    score = sum over channels c of  softplus(q_c) softplus(k_c) cos((n - m) theta_c + delta_c)     theta_c = base^(-c/d)

RoPE turns pairs, whose angle holds content too: a pair matches best at a distance that depends on what it says. Here
every channel has its own frequency, its number sets only how much it counts, and delta, learned by each head, where it
counts most. Queries and keys are multiplied as vectors of width 2d (cosines, then sines), which costs as much as heads
of that width would; a cache holds the d lengths of a key, which are turned when they are read. The paper reports lower
perplexity than RoPE's and little loss past the training length. Its delta starts at 0 and is clamped to -2 pi .. 0; any
angle is in that range modulo a turn, so it is left free here, and is one for all layers.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from gnomon.errors import BadValue, check_arguments
from gnomon.glossary import message
from gnomon.layout import Layout
from gnomon.positions.base import PositionEncoding, Tables, position_dtype
from gnomon.positions.frequencies import angles, check_base, turns
from gnomon.shapes import Float


class PoPE(PositionEncoding):
    """Channels with a length from content and an angle from position."""

    name = "pope"
    paper = "Gopalakrishnan et al. 2025, arXiv:2509.10534"
    cite = r"""@misc{gopalakrishnan2025decoupling,
      title = {Decoupling the "What" and "Where" With Polar Coordinate Positional Embeddings},
      author = {Gopalakrishnan, Anand and Csord{\'a}s, R{\'o}bert and Schmidhuber, J{\"u}rgen and Mozer, Michael C.},
      year = {2025}, eprint = {2509.10534}, archivePrefix = {arXiv}, url = {https://arxiv.org/abs/2509.10534},
    }"""
    acts = "rotation"
    relative = True
    extrapolation = "rises slowly"

    @check_arguments
    def __init__(self, d_head: int, n_heads: int, base: float = 10000.0) -> None:
        """d_head, n_heads: any. base: of the wavelengths."""
        super().__init__()
        check_base(base)
        if d_head < 1 or n_heads < 1:
            raise BadValue(f"d_head and n_heads must be at least 1, got {d_head} and {n_heads}")
        self.d_head, self.n_heads, self.base = d_head, n_heads, base
        self.delta = nn.Parameter(torch.empty(n_heads, d_head))
        self.reset_parameters()

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """A base is right or wrong by itself."""
        if "base" in options:
            check_base(options["base"])

    def reset_parameters(self) -> None:
        """Every channel counts most at its own token."""
        nn.init.zeros_(self.delta)

    def heads(self) -> int:
        """How many heads have their own delta."""
        return self.n_heads

    def frequencies(self) -> list[float]:
        """theta of every channel, in radians per token."""
        return [self.base ** (-c / self.d_head) for c in range(self.d_head)]

    def prepare(self, at: Layout, dtype: torch.dtype = torch.float32) -> Tables:
        """(cos, sin), each (B or 1, 1, T, d), from float64 angles."""
        at = at.one_row()
        a = angles(at.pos, self.frequencies()).unsqueeze(1)
        return a.cos().to(dtype).to(at.device), a.sin().to(dtype).to(at.device)

    def prepare_for(self, at: Layout, k_at: Layout, dtype: torch.dtype = torch.float32) -> Tables:
        """Those of all keys, the queries' among them."""
        return self.prepare(k_at, position_dtype(dtype))

    def query(self, q: Float, tables: Tables) -> Float:
        """q (B, H, T, C) -> (B, H, T, 2C): lengths at angle m theta - delta."""
        assert tables is not None
        if q.shape[1] != self.n_heads or q.shape[-1] != self.d_head:
            built = f"{self.n_heads} heads of width {self.d_head}"
            raise BadValue(f"pope was built for {built}, got {q.shape[1]} of width {q.shape[-1]}")
        cos, sin = (x[..., -q.shape[2] :, :] for x in tables)
        delta = self.delta.to(cos.dtype)[:, None]
        c, s = delta.cos(), delta.sin()
        return _at_angle(F.softplus(q.to(position_dtype(q.dtype))), cos * c + sin * s, sin * c - cos * s).to(q.dtype)

    def key(self, k: Float, tables: Tables) -> Float:
        """k (B, K, T, C) -> its lengths."""
        return F.softplus(k.to(position_dtype(k.dtype))).to(k.dtype)

    def read(self, k: Float, tables: Tables) -> Iterator[tuple[slice, Float]]:
        """Lengths (B, K, S, C) -> (B, K, S, 2C): at angle n theta."""
        assert tables is not None
        yield slice(None), _at_angle(k.to(position_dtype(k.dtype)), *tables).to(k.dtype)

    @torch.no_grad()
    def describe(self, trained: int | None = None) -> list[str]:
        """Wavelengths, what delta is, channels that never complete a turn."""
        w = self.frequencies()
        furthest = float(self.delta.abs().max())
        lines: list[str] = [message("encodings", "pope", channels=self.d_head, base=self.base, delta=furthest)]
        return [*lines, *turns(w, w, trained)]

    def extra_repr(self) -> str:
        """Shown by print(module)."""
        return f"d_head={self.d_head}, n_heads={self.n_heads}, base={self.base:g}"


def _at_angle(length: Float, cos: Float, sin: Float) -> Float:
    """(..., C) -> (..., 2C): x and y of points so far from 0."""
    return torch.cat([length * cos, length * sin], -1)


__all__ = ["PoPE"]
