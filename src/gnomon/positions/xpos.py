"""xPos (Sun et al. 2022, arXiv:2212.10554, section 2): RoPE whose scores fade with distance, the fastest pairs first.

    score = sum over pairs i of  zeta_i^((m - n) / B)  (R_m q)_i . (R_n k)_i       zeta_i = (2i/d + 0.4) / 1.4,  n <= m

The paper multiplies queries by zeta^(m/B) and keys by zeta^(-n/B), which overflows some 36 000 tokens from where
counting starts (B = 512). Only m - n matters, so here both count from the middle of the queries that are read together.
A cache holds keys turned but not scaled: they meet queries of many places. Up to 32 B tokens (float16: 8 B) are read at
once, more in parts, each with the keys scaled anew. For causal attention only: ahead of the query, scores would grow
without bound. Fast pairs no longer reach far, so nothing unseen comes from them, and perplexity rises slowly past the
training length. TorchScale has it; RetNet has its rotation with one decay a head.
"""

from collections.abc import Iterator, Mapping
from math import ceil, log
from typing import Any

import torch

from gnomon.device import autocast_type
from gnomon.errors import BadValue, check_arguments, must_be
from gnomon.glossary import message
from gnomon.layout import Layout
from gnomon.positions.base import PositionEncoding, Tables, position_dtype
from gnomon.positions.frequencies import angles, check_base
from gnomon.positions.rope import Pairing, RoPE
from gnomon.shapes import Float

FLOOR = 0.4  #: gamma of the paper: zeta of the fastest pair is 0.4 / 1.4


class XPos(PositionEncoding):
    """Rotary positions, and a decay with distance for every pair; no parameters."""

    name = "xpos"
    paper = "Sun et al. 2022, arXiv:2212.10554"
    cite = """@misc{sun2022length,
      title = {A Length-Extrapolatable Transformer},
      author = {Sun, Yutao and Dong, Li and Patra, Barun and Ma, Shuming and Huang, Shaohan and Benhaim, Alon and
        Chaudhary, Vishrav and Song, Xia and Wei, Furu},
      year = {2022}, eprint = {2212.10554}, archivePrefix = {arXiv}, url = {https://arxiv.org/abs/2212.10554},
    }"""
    acts = "rotation"
    relative = True
    extrapolation = "rises slowly"
    one_sided = True

    @check_arguments
    def __init__(
        self, d_head: int, scale_base: float = 512.0, base: float = 10000.0, pairing: Pairing = "half"
    ) -> None:
        """scale_base: B, in tokens; after 3.68 B the fastest pair has faded to a hundredth. base, pairing: of rope."""
        super().__init__()
        check_scale_base(scale_base)
        self.rope = RoPE(d_head, base, pairing)
        self.d_head, self.scale_base, self.pairing = d_head, scale_base, pairing

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Both bases are right or wrong by themselves."""
        if "scale_base" in options:
            check_scale_base(options["scale_base"])
        if "base" in options:
            check_base(options["base"])

    def frequencies(self) -> list[float]:
        """theta_i of every pair, in radians per token."""
        return self.rope.frequencies()

    def rates(self) -> list[float]:
        """log(zeta_i) / B of every pair: the logarithm, below 0, of what is left of its score a token further away."""
        d = self.d_head
        return [log((2 * i / d + FLOOR) / (1 + FLOOR)) / self.scale_base for i in range(d // 2)]

    def prepare(self, at: Layout, dtype: torch.dtype = torch.float32) -> Tables:
        """Tables for these tokens among themselves."""
        return self.prepare_for(at, at, dtype)

    def prepare_for(self, at: Layout, k_at: Layout, dtype: torch.dtype = torch.float32) -> Tables:
        """cos and sin of the new tokens, (B or 1, 1, T, d/2); zeta^((m - c)/B) of queries, (B or 1, 1, T, d); and
        zeta^((c - n)/B) of all keys, (parts, B or 1, 1, S, d), c being the middle of each part of the queries."""
        cos, sin = self.rope.prepare(at, position_dtype(dtype)) or ()
        at, k_at, reach = at.one_row(), k_at.one_row(), self._reach(dtype, autocast_type(at.device))
        low, high = _part_ends(at, _parts(at, reach))
        middle = (low + high) // 2  # (B, parts)
        after = at.pos - middle.repeat_interleave(_part_size(at.shape[1], middle.shape[1]), 1)[:, : at.shape[1]]
        before = middle.T.unsqueeze(-1) - k_at.pos  # (parts, B, S)
        scales = [self._faded(gap.clamp(min=-reach), position_dtype(dtype)) for gap in (after, before)]
        return cos, sin, scales[0].unsqueeze(1), scales[1].unsqueeze(2)

    def query(self, q: Float, tables: Tables) -> Float:
        """q (B, H, T, C), turned and scaled."""
        assert tables is not None
        cos, sin, after, _ = tables
        return (self.rope.rotate(q.to(position_dtype(q.dtype)), (cos, sin)) * after).to(q.dtype)

    def key(self, k: Float, tables: Tables) -> Float:
        """k (B, K, T, C), turned."""
        assert tables is not None
        return self.rope.rotate(k, tables[:2])

    def read(self, k: Float, tables: Tables) -> Iterator[tuple[slice, Float]]:
        """Keys (B, K, S, C), scaled for each part of the queries."""
        assert tables is not None
        _, _, after, before = tables
        size = _part_size(after.shape[2], len(before))
        for i, scale in enumerate(before):
            part = slice(i * size, (i + 1) * size) if len(before) > 1 else slice(None)
            yield part, (k.to(position_dtype(k.dtype)) * scale).to(k.dtype)

    def _faded(self, gap: Float, dtype: torch.dtype) -> Float:
        """zeta^(gap / B) of every channel, (..., d), for gaps (...) in tokens."""
        scale = angles(gap, self.rates()).exp().to(dtype).to(gap.device)
        return torch.cat([scale, scale], -1) if self.pairing == "half" else scale.repeat_interleave(2, -1)

    def _reach(self, dtype: torch.dtype, device: str) -> float:
        """How many tokens the queries of one part may span. Where they end, the fastest pair is scaled by e^20, in
        float16 by e^5. No key that is seen lies further ahead of the middle: those that do are held there."""
        narrow = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else dtype
        return (8 if torch.float16 in (dtype, narrow) else 32) * self.scale_base

    def describe(self, trained: int | None = None) -> list[str]:
        """RoPE's own sentences, and how far the fastest and the slowest pair reach."""
        rates = self.rates()
        reach = {"fastest": -log(100) / rates[0], "slowest": -log(100) / rates[-1]}
        first, *more = self.rope.describe(trained)
        lines: list[str] = [first, message("encodings", "xpos", **reach), *more[: 1 if trained is None else 2]]
        if trained is None:
            return lines
        left = torch.tensor(rates).mul(2 * trained).exp()
        return [*lines, message("encodings", "xpos_twice", pairs=int((left < 0.01).sum()), of=len(rates))]

    def extra_repr(self) -> str:
        """Shown by print(module)."""
        return f"d_head={self.d_head}, scale_base={self.scale_base:g}, base={self.rope.base:g}, pairing={self.pairing}"


def check_scale_base(scale_base: float) -> None:
    """Raise BadValue unless it is a number of tokens above 0."""
    must_be("scale_base", scale_base, float)
    if not 0 < scale_base < float("inf"):
        raise BadValue(f"scale_base is the number of tokens over which scores fade, above 0; got {scale_base}")


def _parts(at: Layout, reach: float) -> int:
    """How many parts of one size the queries are read in. A dense layout tells it by the number of its tokens, others
    by where these sit."""
    T = at.shape[1]
    if at.kind == "dense":
        return _count_parts(T, max(1, ceil(T / reach)))
    n = 1
    while n < T:
        low, high = _part_ends(at, n)
        if not bool((high - low > reach).any()):
            break
        n = _count_parts(T, min(2 * n, T))
    return n


def _count_parts(T: int, n: int) -> int:
    """The number of parts that T tokens make when the size of each is that of n equal ones, rounded up."""
    return max(1, ceil(T / max(1, _part_size(T, n))))


def _part_size(T: int, n: int) -> int:
    """Tokens of each of n parts but the last."""
    return ceil(T / n)


def _part_ends(at: Layout, n: int) -> tuple[Float, Float]:
    """(B, n) the lowest and the highest position of the real tokens of each part."""
    T, far = at.shape[1], 2**40
    index = torch.arange(n * _part_size(T, n), device=at.device).clamp(max=T - 1)
    low, high = (at.pos.masked_fill(~at.real, fill)[:, index].view(at.shape[0], n, -1) for fill in (far, -far))
    return low.amin(-1), high.amax(-1)


__all__ = ["XPos"]
