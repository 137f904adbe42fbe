"""p-RoPE (Barbero et al. 2024, arXiv:2410.06205, section 6): RoPE whose slowest pairs stand still.

    pair i turns by  m theta_i   for i < p d/2,   by 0 for the others         theta_i = base^(-2i/d)

Trained models use the slow pairs as channels of meaning, and over a long text even those turn far enough to blur it;
here they carry content alone. p = 1 is RoPE, p = 0 would be no position. Frequencies are those of the whole head; a
`fraction` of rope is another thing, whose turning channels get the frequencies of a narrower head. The paper's best was
p = 0.75; the full-attention layers of Gemma 4 have 0.25. The pairs that turn still break past the training length.
"""

from collections.abc import Mapping
from typing import Any

import torch

from gnomon.errors import BadValue, check_arguments, must_be
from gnomon.glossary import message
from gnomon.layout import Layout
from gnomon.positions.base import PositionEncoding, Tables
from gnomon.positions.frequencies import check_base
from gnomon.positions.rope import Pairing, RoPE
from gnomon.shapes import Float


class PRoPE(PositionEncoding):
    """Rotary positions in the fastest pairs of a head; the slowest see no position."""

    name = "p-rope"
    paper = "Barbero et al. 2024, arXiv:2410.06205"
    cite = r"""@misc{barbero2024round,
      title = {Round and Round We Go! What makes Rotary Positional Encodings useful?},
      author = {Barbero, Federico and Vitvitskyi, Alex and Perivolaropoulos, Christos and Pascanu, Razvan and
        Veli{\v{c}}kovi{\'c}, Petar},
      year = {2024}, eprint = {2410.06205}, archivePrefix = {arXiv}, url = {https://arxiv.org/abs/2410.06205},
    }"""
    used_by = "Gemma 4, in its layers of full attention"
    acts = "rotation"
    relative = True
    extrapolation = "breaks at about 1.2 to 1.4 times"

    @check_arguments
    def __init__(self, d_head: int, p: float = 0.75, base: float = 10000.0, pairing: Pairing = "half") -> None:
        """p: the share of the pairs that turn, the fastest. base and pairing: as of rope."""
        super().__init__()
        check_share(p)
        self.p, self.d_head = p, d_head
        self.rope = RoPE(d_head, base, pairing, scaling={"kind": "proportional", "fraction": p})

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """A share and a base are right or wrong by themselves."""
        if "p" in options:
            check_share(options["p"])
        if "base" in options:
            check_base(options["base"])

    def frequencies(self) -> list[float]:
        """theta_i of every pair, in radians per token; 0 of those that stand still."""
        return self.rope.frequencies()

    def prepare(self, at: Layout, dtype: torch.dtype = torch.float32) -> Tables:
        """(cos, sin), each (B or 1, 1, T, d_head/2)."""
        return self.rope.prepare(at, dtype)

    def rotate(self, x: Float, tables: Tables) -> Float:
        """x (B, H, T, C) with its fastest pairs turned."""
        return self.rope.rotate(x, tables)

    def describe(self, trained: int | None = None) -> list[str]:
        """How many pairs stand still, and RoPE's own sentences about the others."""
        still = sum(theta == 0 for theta in self.frequencies())
        first, *about = self.rope.describe(trained)
        pairs = about[: 3 if trained is not None else 1]  # what follows names the scaling that makes it
        return [first, message("encodings", "p_rope", still=still, pairs=self.d_head // 2), *pairs]

    def extra_repr(self) -> str:
        """Shown by print(module)."""
        return f"d_head={self.d_head}, p={self.p:g}, base={self.rope.base:g}, pairing={self.rope.pairing}"


def check_share(p: float) -> None:
    """Raise BadValue unless it is a share of pairs that leaves some."""
    must_be("p", p, float)
    if not 0 < p <= 1:
        raise BadValue(f"p is the share of pairs that turn, above 0 and at most 1; got {p}")


__all__ = ["PRoPE"]
