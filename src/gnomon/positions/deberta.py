"""Disentangled attention (DeBERTa; He et al. 2021, arXiv:2006.03654, section 3.1).

    score_ij = (q_i . k_j + q_i . K[d(i, j)] + k_j . Q[d(i, j)]) * scale / sqrt(3)        (equation 4)
    K = P W_k, Q = P W_q;   d(i, j) = i - j, clipped or in buckets

P holds a vector of the model's width for every distance, one table for all layers. Each layer projects it: with the
weights of its own queries and keys (versions 2 and 3), or with other ones (`share=False`). Content meets position, and
position content; sqrt(3) is the root of the number of terms. Without buckets the distances from -max_distance on have a
row each (version 1); with them half of a side's have, and the others grow logarithmically up to max_distance (arXiv:
2006.03654, and the code of versions 2 and 3, whose row of the third term is that of the second, not of the opposite
distance as the equation has it). Farther than that all distances are one, and what training never reached is noise.
Used by DeBERTa, mDeBERTa and their kin, all of them encoders.
"""

from bisect import bisect_right
from functools import cache
from types import MappingProxyType

import torch
from torch import nn
from torch.nn import functional as F

from gnomon.errors import BadValue, check_arguments
from gnomon.glossary import message
from gnomon.positions.base import PositionEncoding
from gnomon.positions.hooks import Projection, Side, Tables, of_layer, position_dtype
from gnomon.positions.rows import by_key, gaps, skewed, straight, take
from gnomon.shapes import Bool, Float, Int


class DeBERTa(PositionEncoding):
    """A vector per distance that meets queries as keys do, and keys as queries do."""

    name = "deberta"
    paper = "He et al. 2021, arXiv:2006.03654"
    cite = """@misc{he2021deberta,
      title = {{DeBERTa}: Decoding-enhanced {BERT} with Disentangled Attention},
      author = {He, Pengcheng and Liu, Xiaodong and Gao, Jianfeng and Chen, Weizhu},
      year = {2021}, eprint = {2006.03654}, archivePrefix = {arXiv}, url = {https://arxiv.org/abs/2006.03654},
    }"""
    used_by = "DeBERTa, mDeBERTa"
    acts = "attention"
    relative = True
    extrapolation = "rises slowly, far order is lost"
    tiny = MappingProxyType({"buckets": 4, "max_distance": 8})  # what texts of a few tokens pass

    @check_arguments
    def __init__(
        self,
        d_model: int,
        d_head: int,
        n_heads: int,
        n_layers: int = 1,
        buckets: int | None = 256,
        max_distance: int = 512,
        c2p: bool = True,
        p2c: bool = True,
        share: bool = True,
        norm: bool = True,
        norm_eps: float = 1e-7,
        std: float = 0.02,
    ) -> None:
        """buckets: of each side, in place of a row per distance, unless max_distance is within half of them.
        max_distance: from here on all distances are one.
        c2p, p2c: whether queries meet positions, and keys. share: whether positions are projected as tokens are.
        norm: whether the table goes through a layer norm first, with norm_eps (version 3). std: of the table."""
        super().__init__()
        if min(d_model, d_head, n_heads, n_layers) < 1 or not (c2p or p2c):
            raise BadValue(
                f"deberta needs sizes of at least 1, and c2p, p2c or both; got d_model={d_model}, d_head={d_head}, "
                f"n_heads={n_heads}, n_layers={n_layers}, c2p={c2p}, p2c={p2c}"
            )
        if (buckets is not None and (buckets < 4 or buckets % 2)) or max_distance < 1:
            raise BadValue(
                f"buckets must be even and at least 4, and max_distance at least 1; got buckets={buckets}, "
                f"max_distance={max_distance}"
            )
        if norm_eps <= 0:
            raise BadValue(f"norm_eps keeps a norm from dividing by 0, so it is above 0; got {norm_eps}")
        self.d_model, self.d_head, self.n_heads, self.n_layers = d_model, d_head, n_heads, n_layers
        logarithmic = buckets is not None and max_distance > buckets // 2 + 1
        self.buckets, self.max_distance, self.c2p, self.p2c, self.share = (
            buckets if logarithmic else None,
            max_distance,
            c2p,
            p2c,
            share,
        )
        self.edges = () if self.buckets is None else log_edges(self.buckets // 2, max_distance)
        self.span = buckets if buckets is not None and logarithmic else max_distance
        self.std, self.norm_eps, self.pair_width = std, norm_eps, 5 * n_heads
        self.weight = nn.Parameter(torch.empty(2 * self.span, d_model))
        self.norm = nn.LayerNorm(d_model, norm_eps) if norm else None
        joined, own = n_heads * d_head, not share
        for name, needed in (("key", own and c2p), ("query", own and p2c)):
            for part, shape in (("weight", (n_layers, joined, d_model)), ("bias", (n_layers, joined))):
                self.register_parameter(f"{name}_{part}", nn.Parameter(torch.empty(shape)) if needed else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the table, and the projections where it has its own, anew."""
        for name, p in self.named_parameters(recurse=False):
            nn.init.zeros_(p) if name.endswith("_bias") else nn.init.normal_(p, std=self.std)
        if self.norm is not None:
            self.norm.reset_parameters()

    def heads(self) -> int:
        """How many heads the table is projected to."""
        return self.n_heads

    def of_layer(self, tables: Tables, n: int) -> Tables:
        """P (N, D), and the layer's own projections of it, weights and biases, where it has them."""
        rows = self.weight.to(position_dtype(self.weight.dtype))
        if self.norm is not None:
            gain, shift = (p.to(rows.dtype) for p in (self.norm.weight, self.norm.bias))
            rows = F.layer_norm(rows, (self.d_model,), gain, shift, self.norm.eps)
        own = (p for name, p in self.named_parameters(recurse=False) if name != "weight")
        return rows, *(of_layer(p, n) for p in own)

    def project(self, tables: Tables, queries: Projection, keys: Projection) -> Tables:
        """K and Q (1, H, N, C), those of the two that are used."""
        assert tables is not None
        rows, own = tables[0][None], tables[1:]
        if self.share:
            return tuple(made(rows) for made, used in ((keys, self.c2p), (queries, self.p2c)) if used)
        pairs = zip(own[::2], own[1::2], strict=True)
        shape = (1, rows.shape[1], self.n_heads, self.d_head)
        return tuple(F.linear(rows, w.to(rows.dtype), b.to(rows.dtype)).view(shape).transpose(1, 2) for w, b in pairs)

    def row(self, gap: Int) -> Int:
        """The row of a distance, a key's position less that of its query: back, clipped or in buckets, from -span."""
        back = -gap
        if self.buckets is not None:
            half, far = self.buckets // 2, back.abs()
            edges = torch.tensor(self.edges, device=back.device)
            far = torch.where(far <= half, far, half + torch.bucketize(far, edges, right=True))
            back = back.sign() * far
        return (back + self.span).clamp(0, 2 * self.span - 1)

    def scores(self, q: Side, k: Side, tables: Tables, ok: Bool, scale: float) -> Float:
        """Equation 4, the terms of position by the products with all rows of the table."""
        assert tables is not None
        if tables[0].dim() != 4:
            raise BadValue(
                "deberta projects its table as a layer projects tokens: use gn.MultiHeadAttention(...)(x, position), "
                "or give Content(position.project(position.of_layer(None, 0), queries, keys))"
            )
        gap, left, T, S = straight(q.at, k.at, q.lag), list(tables), q.x.shape[2], k.x.shape[2]
        row = self.row(gaps(q.at, k.at) if gap is None else gap)
        s = q.x @ k.x.transpose(-1, -2)
        if self.c2p:
            keys = left.pop(0).transpose(-1, -2)
            s = s + (take(q.x @ keys, row) if gap is None else skewed(q.x @ keys[..., row], S))
        if self.p2c and gap is not None:
            s = s + by_key(k.x, left[0][:, :, row], T)
        elif self.p2c and T == 1:  # one query: of each key's products one is needed
            s = s + (k.x * left[0][0, :, row[:, 0, 0]].transpose(0, 1)).sum(-1)[:, :, None]
        elif self.p2c:
            s = s + take(k.x @ left[0].transpose(-1, -2), row.transpose(-1, -2)).transpose(-1, -2)
        return s * (scale / (1 + self.c2p + self.p2c) ** 0.5)

    def describe(self, trained: int | None = None) -> list[str]:
        """The table, and what it can tell apart."""
        exact = self.span - 1 if self.buckets is None else self.buckets // 2
        lines: list[str] = [
            message("encodings", "deberta", rows=2 * self.span, width=self.d_model),
            message("encodings", "deberta_distances", exact=exact, furthest=self.max_distance),
        ]
        if trained is None:
            return lines
        twice = "t5_twice" if trained >= self.max_distance else "t5_twice_partly"
        return [*lines, message("encodings", twice, furthest=self.max_distance)]

    def extra_repr(self) -> str:
        """Shown by print(module)."""
        return (
            f"n_heads={self.n_heads}, n_layers={self.n_layers}, buckets={self.buckets}, "
            f"max_distance={self.max_distance}, c2p={self.c2p}, p2c={self.p2c}, share={self.share}"
        )


@cache
def log_edges(half: int, max_distance: int) -> tuple[int, ...]:
    """First distance of each logarithmic bucket.

    A distance r above half is in bucket half + ceil(ln(r / half) / ln((max - 1) / half) * (half - 1)), so bucket
    half + j + 1 starts at the least r with r^(half - 1) > half^(half - 1 - j) * (max - 1)^j: whole numbers, so no
    boundary falls to rounding.
    """

    between = range(half, max_distance)
    most = [half ** (half - 1 - j) * (max_distance - 1) ** j for j in range(half)]
    return tuple(half + bisect_right(between, power, key=lambda r: r ** (half - 1)) for power in most)


__all__ = ["DeBERTa", "log_edges"]
