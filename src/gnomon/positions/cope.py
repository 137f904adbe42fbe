"""Contextual positions (CoPE; Golovneva et al. 2024, arXiv:2405.18719, section 4).

    g_ij     = sigmoid(q_i . k_j * scale)                                   (equation 3)
    p_ij     = sum over l = j .. i of g_il, at most P - 1                   (equation 4)
    score_ij = q_i . (k_j + e[p_ij]) * scale                                (equation 6), between two rows a mix of both

A query counts only what its gates let through, so a position may be "three sentences ago". Each layer learns P vectors
that its heads share; heads differ by their gates. Farther counts than P - 1 are one. Good at counting and at copying
by count; past the training length it holds as long as counts do. Causal: it counts from the query back. This follows
the authors' repository; in the listing of the paper's appendix e is not scaled, which `scaled=False` gives. Counting
takes several matrices of queries by keys for each head, so it is the slowest encoding here.
"""

from types import MappingProxyType

import torch
from torch import nn

from gnomon.errors import BadValue, check_arguments
from gnomon.glossary import message
from gnomon.positions.base import PositionEncoding
from gnomon.positions.hooks import Side, Tables, of_layer
from gnomon.positions.rows import take
from gnomon.shapes import Bool, Float


class CoPE(PositionEncoding):
    """A learned vector per count of tokens that a query's own gates let through."""

    name = "cope"
    paper = "Golovneva et al. 2024, arXiv:2405.18719"
    cite = """@misc{golovneva2024contextual,
      title = {Contextual Position Encoding: Learning to Count What's Important},
      author = {Golovneva, Olga and Wang, Tianlu and Weston, Jason and Sukhbaatar, Sainbayar},
      year = {2024}, eprint = {2405.18719}, archivePrefix = {arXiv}, url = {https://arxiv.org/abs/2405.18719},
    }"""
    acts = "attention"
    relative = True
    order_only = True
    extrapolation = "rises slowly"
    tiny = MappingProxyType({"rows": 6})  # fewer than a text of a few tokens reaches
    one_sided = True

    @check_arguments
    def __init__(self, d_head: int, n_heads: int, n_layers: int = 1, rows: int = 64, scaled: bool = True) -> None:
        """rows: P, of the table; counts from P - 1 on are one. scaled: whether e is, as keys are."""
        super().__init__()
        if min(d_head, n_heads, n_layers) < 1 or rows < 2:
            raise BadValue(
                f"cope needs sizes of at least 1 and two rows or more; got d_head={d_head}, n_heads={n_heads}, "
                f"n_layers={n_layers}, rows={rows}"
            )
        self.d_head, self.n_heads, self.n_layers = d_head, n_heads, n_layers
        self.rows, self.scaled, self.pair_width = rows, scaled, 8 * n_heads
        self.weight = nn.Parameter(torch.empty(n_layers, rows, d_head))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """As the authors start: with vectors of 0."""
        nn.init.zeros_(self.weight)

    def heads(self) -> int:
        """How many heads count."""
        return self.n_heads

    def of_layer(self, tables: Tables, n: int) -> Tables:
        """The vectors (P, C) of a layer."""
        return (of_layer(self.weight, n),)

    def counts(self, q: Side, k: Side, ok: Bool, scale: float) -> tuple[Float, Float]:
        """q . k, and p_ij, both (B, H, T, S): gates of what is seen, added up from the newest key back."""
        plain = q.x @ k.x.transpose(-1, -2)
        gates = (plain * scale).sigmoid() * ok
        if k.at.kind != "custom":  # memory is in time order
            return plain, gates.flip(-1).cumsum(-1).flip(-1).clamp(max=self.rows - 1)
        order = k.at.step.argsort(dim=1, stable=True)[:, None, None]
        summed = take(gates, order).flip(-1).cumsum(-1).flip(-1).clamp(max=self.rows - 1)
        return plain, take(summed, order.argsort(-1))

    def scores(self, q: Side, k: Side, tables: Tables, ok: Bool, scale: float) -> Float:
        """Equation 6, by the products with all P vectors, of which each pair takes a mix of two."""
        assert tables is not None
        plain, p = self.counts(q, k, ok, scale)
        by_count = q.x @ tables[0].T  # (B, H, T, P)
        low = p.detach().floor().long()
        share = p - low
        added = take(by_count, low) * (1 - share) + take(by_count, (low + 1).clamp(max=self.rows - 1)) * share
        return (plain + added) * scale if self.scaled else plain * scale + added

    @torch.no_grad()
    def describe(self, trained: int | None = None) -> list[str]:
        """The vectors, and how far they count."""
        length = float(self.weight.norm(dim=-1).mean())
        lines: list[str] = [
            message("encodings", "cope", rows=self.rows, width=self.d_head, length=length),
            message("encodings", "cope_counts", furthest=self.rows - 1),
        ]
        return lines if trained is None else [*lines, message("encodings", "cope_twice", furthest=self.rows - 1)]

    def extra_repr(self) -> str:
        """Shown by print(module)."""
        return f"rows={self.rows}, n_heads={self.n_heads}, n_layers={self.n_layers}, scaled={self.scaled}"


__all__ = ["CoPE"]
