"""Random start: every text begins somewhere between 0 and the last place from which it still fits.

    p_i = i + k,      k drawn from 0 .. max - n for each text of n tokens

Trains all rows of a learned table, or all phases, on short texts, with exact distances (SHAPE, Kiyono et al. 2021,
arXiv:2109.05644, with sinusoids; with a learned table it is a strong baseline for length generalisation).
An encoding whose scores see distances alone (rope, alibi, t5) reads the same with any start, so it gains nothing; past
`max` nothing was trained. Read from 0.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from gnomon.errors import BadValue
from gnomon.layout import Layout
from gnomon.positions.ids.base import PositionIds, documents, draw, move
from gnomon.shapes import Int


@dataclass(frozen=True)
class RandomStart(PositionIds):
    """Positions that count from a random start.

    max   how many positions there are
    per   "row": every text starts elsewhere; "batch": all of them are moved by the same
    """

    name: ClassVar[str] = "random-start"
    paper: ClassVar[str] = "Kiyono et al. 2021, arXiv:2109.05644"
    cite: ClassVar[str] = """@misc{kiyono2021shape,
      title = {{SHAPE}: Shifted Absolute Position Embedding for Transformers},
      author = {Kiyono, Shun and Kobayashi, Sosuke and Suzuki, Jun and Inui, Kentaro},
      year = {2021}, eprint = {2109.05644}, archivePrefix = {arXiv}, url = {https://arxiv.org/abs/2109.05644},
    }"""
    formula: ClassVar[str] = "i + k, k from 0..max-n"

    max: int
    per: Literal["row", "batch"] = "row"

    def __post_init__(self) -> None:
        """Raise BadValue for numbers of positions that hold no text."""
        super().__post_init__()
        if self.max < 1:
            raise BadValue(f"max is a number of positions, at least 1; got {self.max}")

    def train(self, ids: Int, at: Layout) -> Layout:
        """Every document moved by its own draw, or all by one; coordinates by the same as positions."""
        told, length = documents(at), at.length
        if not torch.compiler.is_compiling() and length.numel() and int(length.max()) > self.max:
            raise BadValue(
                f"random-start has {self.max} positions, but a text reaches {int(length.max())}: give a larger max"
            )
        if self.per == "batch":
            length = length.amax().expand_as(length)
        u = draw(*((len(at.pos), told.most) if self.per == "row" else (1, 1)), device=at.device)
        start = (u.expand(len(at.pos), told.most).gather(1, told.index) * (self.max - length + 1)).long()
        there = move(at, at.pos + start, at.length + start)
        return there if at.coords is None else there.at_coords(at.coords + start[..., None])

    def reach(self, length: int) -> int:
        """All positions there are."""
        return self.max


__all__ = ["RandomStart"]
