"""Randomized positions (Ruoss et al. 2023, arXiv:2305.16843, section 3): any length's positions are met in training.

    p_1 < p_2 < .. < p_n      n of the positions 0 .. max-1, drawn without replacement and sorted, anew at every step

The model learns the order of positions instead of their distances, so it meets the positions of texts up to `max` long
while it reads short ones; `max` is at least the longest text it shall ever read (2048 in the paper). The paper draws at
test time as well; later work (Abacus, arXiv:2405.17399, with FIRE) reads at 0, 1, 2. It helps where order is the task
(copying, sorting, arithmetic); a language model loses the exact distances that it reads by, and past `max` there is no
position at all. Used with rope, alibi, sinusoidal and learned positions in research on length generalisation.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch

from gnomon.errors import BadValue
from gnomon.layout import Layout
from gnomon.positions.ids.base import Documents, PositionIds, documents, draw, move
from gnomon.shapes import Int


@dataclass(frozen=True)
class Randomized(PositionIds):
    """Sorted positions drawn without replacement from 0 .. max-1.

    max   how many positions there are to draw from
    per   "row": every text draws its own; "batch": all rows share one draw, as in the paper's code
    reading  outside training "contiguous", 0, 1, 2; or "sampled", one draw for each length, which `seed` decides. A
             text that grows then moves at every token and is read again from its start, which is slow
    """

    name: ClassVar[str] = "randomized"
    paper: ClassVar[str] = "Ruoss et al. 2023, arXiv:2305.16843"
    cite: ClassVar[str] = r"""@misc{ruoss2023randomized,
      title = {Randomized Positional Encodings Boost Length Generalization of Transformers},
      author = {Ruoss, Anian and Del{\'e}tang, Gr{\'e}goire and Genewein, Tim and Grau-Moya, Jordi and
        Csord{\'a}s, R{\'o}bert and Bennani, Mehdi and Legg, Shane and Veness, Joel},
      year = {2023}, eprint = {2305.16843}, archivePrefix = {arXiv}, url = {https://arxiv.org/abs/2305.16843},
    }"""
    formula: ClassVar[str] = "n sorted draws from 0..max-1"

    max: int
    per: Literal["row", "batch"] = "row"
    reading: Literal["contiguous", "sampled"] = "contiguous"
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise BadValue for numbers of positions that hold no text."""
        super().__post_init__()
        if self.max < 1 or self.seed < 0:
            raise BadValue(
                f"max is a number of positions, at least 1, and seed at least 0; got {self.max}, {self.seed}"
            )

    def train(self, ids: Int, at: Layout) -> Layout:
        """One draw for each document, or one order of all positions that the batch shares."""
        told = self._documents(at)
        rows = (len(at.pos), told.most) if self.per == "row" else (1, 1)
        order = (
            draw(*rows, self.max, device=at.device).argsort(-1).argsort(-1)
        )  # the place of each position in the draw
        order = order.expand(len(at.pos), told.most, -1)
        count = at.pos.new_zeros(len(at.pos), told.most).scatter_reduce(1, told.index, told.count, "amax")
        every = torch.arange(self.max, device=at.device)
        chosen = torch.where(order < count[..., None], every, self.max).sort(-1).values  # (B, documents, max)
        flat = told.index * self.max + told.rank
        return move(at, chosen.flatten(1).gather(1, flat).where(at.real, 0))

    def read(self, ids: Int, at: Layout) -> Layout:
        """0, 1, 2, or the draw that belongs to the length of each document."""
        if self.reading == "contiguous":
            return at
        told = self._documents(at)
        pos = torch.zeros_like(told.rank)
        for n in set(told.count[at.real].tolist()):
            mine = self._sample(n).to(at.device)
            pos = torch.where((told.count == n) & at.real, mine[told.rank.clamp(max=n - 1)], pos)
        return move(at, pos)

    def _sample(self, n: int) -> Int:
        seed = int(np.random.SeedSequence([self.seed, n]).generate_state(1)[0])
        order = torch.randperm(self.max, generator=torch.Generator().manual_seed(seed))
        return order[:n].sort().values

    def _documents(self, at: Layout) -> Documents:
        if at.coords is not None:
            raise BadValue("randomized draws positions along one axis, but these tokens sit at several coordinates")
        told = documents(at)
        if not torch.compiler.is_compiling() and told.count.numel() and int(told.count.max()) > self.max:
            raise BadValue(
                f"randomized draws from {self.max} positions, but a text has {int(told.count.max())} tokens: "
                "train with a larger max"
            )
        return told

    @property
    def in_reading(self) -> bool:
        """Whether it is sampled outside training."""
        return self.reading == "sampled"

    def reach(self, length: int) -> int:
        """All positions there are to draw from."""
        return self.max


__all__ = ["Randomized"]
