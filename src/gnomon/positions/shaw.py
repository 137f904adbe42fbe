"""Relative position vectors (Shaw, Uszkoreit and Vaswani 2018, arXiv:1803.02155, section 3).

    score_ij = q_i . (k_j + aK[clip(j - i)]) * scale                    (equation 4)
    out_i    = sum_j p_ij (v_j + aV[clip(j - i)])                       (equation 3)      clip to -K .. K

Each layer learns 2 K + 1 vectors for keys and as many for values, which its heads share; with `per_head` each head has
its own (the paper's base model, K = 16, has; its big one, K = 8, shares). Farther than K all distances are one, so
nothing new is met past the training length, but no head can tell far tokens apart by position. Used for translation,
without values in Music Transformer (Huang et al. 2018), and for speech in w2v-BERT 2.0.
"""

from types import MappingProxyType

import torch
from torch import nn

from gnomon.errors import BadValue, check_arguments
from gnomon.glossary import message
from gnomon.layout import Layout
from gnomon.positions.base import PositionEncoding
from gnomon.positions.hooks import Side, Tables, of_layer
from gnomon.positions.rows import collect, gaps, skewed, spread, straight, take
from gnomon.shapes import Bool, Float, Int


class Shaw(PositionEncoding):
    """A learned vector per clipped distance, added to keys and to values."""

    name = "shaw"
    paper = "Shaw et al. 2018, arXiv:1803.02155"
    cite = """@misc{shaw2018self,
      title = {Self-Attention with Relative Position Representations},
      author = {Shaw, Peter and Uszkoreit, Jakob and Vaswani, Ashish},
      year = {2018}, eprint = {1803.02155}, archivePrefix = {arXiv}, url = {https://arxiv.org/abs/1803.02155},
    }"""
    used_by = "Music Transformer"
    acts = "attention"
    relative = True
    extrapolation = "rises slowly, far order is lost"
    tiny = MappingProxyType({"clip": 4})  # what texts of a few tokens pass

    @check_arguments
    def __init__(
        self, d_head: int, n_heads: int, n_layers: int = 1, clip: int = 16, per_head: bool = False, values: bool = True
    ) -> None:
        """clip: K, the distance from which on all are one. per_head: vectors of its own for each head.
        values: whether values get vectors, too; the paper found that keys alone do as well."""
        super().__init__()
        if min(d_head, n_heads, n_layers, clip) < 1:
            raise BadValue(
                f"shaw needs sizes and a clip of at least 1; got d_head={d_head}, n_heads={n_heads}, "
                f"n_layers={n_layers}, clip={clip}"
            )
        self.d_head, self.n_heads, self.n_layers, self.clip, self.per_head = d_head, n_heads, n_layers, clip, per_head
        self.pair_width = 3 * n_heads  # the product, the number taken, the sum
        shape = (n_layers, n_heads if per_head else 1, 2 * clip + 1, d_head)
        self.keys = nn.Parameter(torch.empty(shape))
        self.values_ = nn.Parameter(torch.empty(shape)) if values else None
        self.reset_parameters()

    def heads(self) -> int:
        """How many heads the vectors are for."""
        return self.n_heads

    def reset_parameters(self) -> None:
        """Draw the vectors anew, as the authors' library does (Glorot and Bengio 2010)."""
        most = (6 / (2 * self.clip + 1 + self.d_head)) ** 0.5
        for table in self.parameters():
            nn.init.uniform_(table, -most, most)

    def of_layer(self, tables: Tables, n: int) -> Tables:
        """(1 or H, 2 K + 1, C) of keys, and of values where they have any."""
        return tuple(of_layer(table, n) for table in self.parameters())

    def row(self, gap: Int) -> Int:
        """The row of a distance, a key's position less that of its query: clipped, counted from -K."""
        return gap.clamp(-self.clip, self.clip) + self.clip

    def scores(self, q: Side, k: Side, tables: Tables, ok: Bool, scale: float) -> Float:
        """Equation 4: the query meets the key, and the vector of their distance."""
        assert tables is not None
        gap, table = straight(q.at, k.at, q.lag), tables[0]
        if gap is None:
            by_distance = take(q.x @ table.transpose(-1, -2), self.row(gaps(q.at, k.at)))
        else:
            by_distance = skewed(q.x @ table[:, self.row(gap)].transpose(-1, -2), k.x.shape[2])
        return (q.x @ k.x.transpose(-1, -2) + by_distance) * scale

    def values(self, p: Float, v: Float, tables: Tables, q_at: Layout, k_at: Layout, lag: int | None = None) -> Float:
        """Equation 3: the weights of all keys at one distance meet its vector at once."""
        assert tables is not None
        if len(tables) < 2:
            return p @ v
        gap, table = straight(q_at, k_at, lag), tables[1]
        if gap is None:
            return p @ v + collect(p, self.row(gaps(q_at, k_at)), 2 * self.clip + 1) @ table
        return p @ v + spread(p) @ table[:, self.row(gap)]

    @torch.no_grad()
    def describe(self, trained: int | None = None) -> list[str]:
        """The vectors, and what they can tell apart."""
        length = float(self.keys.norm(dim=-1).mean())
        per = "shaw_heads" if self.per_head else "shaw"
        lines: list[str] = [message("encodings", per, rows=2 * self.clip + 1, width=self.d_head, length=length)]
        lines.append(message("encodings", "shaw_clip", furthest=self.clip))
        if trained is None:
            return lines
        return [*lines, message("encodings", "t5_twice", furthest=self.clip)]

    def extra_repr(self) -> str:
        """Shown by print(module)."""
        values = "" if self.values_ is not None else ", values=False"
        return f"clip={self.clip}, n_layers={self.n_layers}, per_head={self.per_head}{values}"


__all__ = ["Shaw"]
