"""Abacus positions (McLeish et al. 2024, arXiv:2405.17399, section 3): a digit sits at its place within its number.

    p = k + 1, k + 2, .. for the digits of each number, 0 for every other token       k from 0 .. start, in training

Numbers are written with the lowest digit first, so digits of one value share a position whatever the number's length,
and sums and products of far longer numbers line up (20 digits trained, 100 read). One k for the whole batch, as in the
authors' code; k = 0 outside training. Numbers longer than training length + start have unmet positions. Positions tell
nothing of the order of numbers: that is left to causality, so it belongs in a causal model. All encodings of a model
read them; the authors' FIRE beside a table of them reads plain positions, which a recipe does not offer. They are a
function of the tokens, f(tokens); position coupling is another such function (see `PositionIds`).
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch

from gnomon.data import Tokenizer
from gnomon.errors import BadValue
from gnomon.layout import Layout
from gnomon.positions.ids.base import PositionIds, documents, draw, move
from gnomon.shapes import Int


@dataclass(frozen=True)
class Abacus(PositionIds):
    """The place of each digit within its number, counted from its first.

    start    the largest random start in training, so that longer numbers have met positions
    digits   the ids of the tokens that are digits; `gnomon train` and the lab read them off the tokenizer
    """

    name: ClassVar[str] = "abacus"
    paper: ClassVar[str] = "McLeish et al. 2024, arXiv:2405.17399"
    cite: ClassVar[str] = """@misc{mcleish2024transformers,
      title = {Transformers Can Do Arithmetic with the Right Embeddings},
      author = {McLeish, Sean and Bansal, Arpit and Stein, Alex and Jain, Neel and Kirchenbauer, John and
        Bartoldson, Brian R. and Kailkhura, Bhavya and Bhatele, Abhinav and Geiping, Jonas and
        Schwarzschild, Avi and Goldstein, Tom},
      year = {2024}, eprint = {2405.17399}, archivePrefix = {arXiv}, url = {https://arxiv.org/abs/2405.17399},
    }"""
    formula: ClassVar[str] = "index within the number + k"

    start: int = 99
    digits: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        """Raise BadValue for a start below 0, and for digits that are no ids."""
        super().__post_init__()
        if self.start < 0:
            raise BadValue(f"start is the largest offset of positions, at least 0; got {self.start}")
        if any(digit < 0 for digit in self.digits or ()):
            raise BadValue(f"digits are the ids of tokens, 0 or more each; got {list(self.digits or ())}")

    def check(self) -> None:
        """Raise BadValue where nothing says which tokens are digits."""
        if not self.digits:
            raise BadValue(
                "abacus counts digits, and nothing says which tokens these are: Abacus(digits=(ids of 0 to 9)), or "
                "Abacus().fitted(tokenizer)"
            )

    def fitted(self, tokenizer: Tokenizer) -> Self:
        """With the ids of the digits 0 to 9, one token each; BadValue where the vocabulary joins them with others."""
        if self.digits is not None:
            return self
        ids = [tokenizer.encode(digit) for digit in "0123456789"]
        if any(len(one) != 1 for one in ids):
            raise BadValue("abacus counts digits, but this vocabulary has no token for each: take bytes or characters")
        return replace(self, digits=tuple(one[0] for one in ids))

    def train(self, ids: Int, at: Layout) -> Layout:
        """The same from a random start."""
        there = self.read(ids, at)
        k = (draw(1, device=at.device) * (self.start + 1)).long()
        return move(there, torch.where(there.pos > 0, there.pos + k, 0))

    def read(self, ids: Int, at: Layout) -> Layout:
        """1, 2, 3 for the digits of each number, 0 for everything else."""
        self.check()
        told = documents(at)
        digit = torch.isin(ids, torch.tensor(self.digits, device=ids.device)) & at.real
        here = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        # the last token up to each that continues no number: one that is no digit, or the first of its document
        last = torch.where((digit & (told.rank > 0)) | ~at.real, 0, here).cummax(1).values
        place = told.rank - told.rank.gather(1, last) + digit.gather(1, last).long()
        return move(at, torch.where(digit, place, 0))

    def reach(self, length: int) -> int:
        """The longest number, from the latest start."""
        return length + self.start + 1


__all__ = ["Abacus"]
