"""T5's relative bias (Raffel et al. 2020, arXiv:1910.10683, section 2.1): one learned number per bucket and head.

    score = q . k * scale + table[bucket(j - i), h]

Half of a side's buckets hold one distance each, the other half grow logarithmically up to `max_distance`; farther keys
share the last one. Bidirectional maps use one half of the buckets for each side. Buckets that training never reached
hold noise: with the default max_distance=128 the last causal bucket starts at distance 113, so a shorter training
length wants max_distance <= that length. UMT5 (Chung et al. 2023, arXiv:2304.09151) has a table for each layer.
"""

from bisect import bisect_left
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from gnomon.errors import BadValue, check_arguments
from gnomon.glossary import message
from gnomon.positions.base import PositionEncoding
from gnomon.positions.spec import Spec
from gnomon.shapes import Float, Int


class T5(PositionEncoding):
    """Learned bias per distance bucket and head; one table shared by all layers, unless they name different ones."""

    name = "t5"
    paper = "Raffel et al. 2020, arXiv:1910.10683"
    cite = """@misc{raffel2020exploring,
      title = {Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer},
      author = {Raffel, Colin and Shazeer, Noam and Roberts, Adam and Lee, Katherine and Narang, Sharan and Matena,
        Michael and Zhou, Yanqi and Li, Wei and Liu, Peter J.},
      year = {2020}, eprint = {1910.10683}, archivePrefix = {arXiv}, url = {https://arxiv.org/abs/1910.10683},
    }"""
    used_by = "T5, mT5, UMT5, LongT5, Switch Transformer, UDOP"
    acts = "score"
    relative = True
    extrapolation = "rises slowly"

    @check_arguments
    def __init__(
        self,
        n_heads: int,
        causal: bool = True,
        n_buckets: int = 32,
        max_distance: int = 128,
        std: float = 0.02,
        table: int = 0,
    ) -> None:
        """n_buckets: rows of the table. max_distance: from here on all keys share the last bucket.
        causal: look back only; otherwise half the buckets serve each side. std: of the initialisation.
        table: which one; in a list of encodings, layers with the same number share it."""
        super().__init__()
        if table < 0:
            raise BadValue(f"table must be at least 0, the number of a table, got {table}")
        exact = (n_buckets if causal else n_buckets // 2) // 2
        if n_buckets < 2 or exact < 1 or (not causal and n_buckets % 2):
            raise BadValue(f"n_buckets must be even and at least {2 if causal else 4}, got {n_buckets}")
        if max_distance <= exact:
            raise BadValue(
                f"max_distance={max_distance} must exceed the {exact} distances that have buckets of their own; "
                f"raise it, or lower n_buckets={n_buckets}"
            )
        self.n_heads, self.causal, self.n_buckets, self.max_distance = n_heads, causal, n_buckets, max_distance
        self.std, self.table = std, table
        n = n_buckets if causal else n_buckets // 2
        self.edges = log_edges(n // 2, n - n // 2, max_distance)  # here, since torch's compiler cannot bisect
        self.one_sided = causal
        self.weight = nn.Parameter(torch.empty(n_buckets, n_heads))
        self.reset_parameters()

    @classmethod
    def options_for(cls, length: int) -> dict[str, Any]:
        """The last bucket begins at half the length, so that training shows it a range of distances: one that begins at
        the end has met a single distance, and learns nothing about those beyond."""
        return {"max_distance": length // 2, "n_buckets": min(32, length // 2)}

    def reset_parameters(self) -> None:
        """Draw the table anew."""
        nn.init.normal_(self.weight, std=self.std)

    def heads(self) -> int:
        """How many heads the table has."""
        return self.n_heads

    def bucket(self, gap: Int) -> Int:
        """Bucket of a relative position key - query, any shape. Log boundaries are exact: integers decide them."""
        n = self.n_buckets if self.causal else self.n_buckets // 2
        side = torch.zeros_like(gap) if self.causal else (gap > 0) * n
        back = (-gap).clamp(min=0) if self.causal else gap.abs()
        log = sum((back >= edge).to(torch.int64) for edge in self.edges)
        return (side + torch.where(back < n // 2, back, n // 2 + log - 1)).long()

    def bias(self, h: Tensor, q: Int, k: Int) -> Float:
        """table[bucket(k - q), h]."""
        return self.weight[self.bucket(k - q), h.long()]

    def describe(self, trained: int | None = None) -> list[str]:
        """Buckets, and what they can tell apart."""
        n = self.n_buckets if self.causal else self.n_buckets // 2
        table = {"buckets": self.n_buckets, "heads": self.n_heads, "side": n}
        lines: list[str] = [
            message("encodings", "t5_back" if self.causal else "t5_sides", **table),
            message("encodings", "t5_distances", exact=n // 2, furthest=self.max_distance),
        ]
        if trained is None:
            return lines
        twice = "t5_twice" if trained >= self.max_distance else "t5_twice_partly"
        return [*lines, message("encodings", twice, furthest=self.max_distance)]

    def extra_repr(self) -> str:
        """Shown by print(module)."""
        return (
            f"n_heads={self.n_heads}, n_buckets={self.n_buckets}, max_distance={self.max_distance}, "
            f"causal={self.causal}"
        )


def tables(spec: Spec, n_layers: int) -> tuple[Spec, ...]:
    """A choice of t5 as one for each layer, with a table of its own."""
    return tuple(spec.with_options(table=n) for n in range(n_layers))


@cache
def log_edges(exact: int, logarithmic: int, max_distance: int) -> tuple[int, ...]:
    """First distance of each logarithmic bucket.

    Bucket exact + j starts where floor(ln(r/exact) / ln(max/exact) * logarithmic) reaches j, that is at the least r
    with r^log >= max^j * exact^(log-j): whole numbers, so no boundary falls to rounding.
    """

    between = range(exact, max_distance)
    least = [max_distance**j * exact ** (logarithmic - j) for j in range(logarithmic)]
    return tuple(exact + bisect_left(between, power, key=lambda r: r**logarithmic) for power in least)


__all__ = ["T5", "log_edges", "tables"]
