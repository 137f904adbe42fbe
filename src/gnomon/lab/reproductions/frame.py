"""What a reproduction is: published numbers, cells that repeat the experiment at a small size, and an honest verdict.

    conditions   what the publication compares (encodings, or ways to extend one), each with its published numbers
    columns      where they are measured (lengths); those of ours lie at the same multiples of the training length
    order        Kendall's tau between the published numbers and ours, with its interval over seeds
    verdict      computed from the numbers: whether the published order appears, in part, or not at this size

A model that did not learn its task at the lengths it was trained on says nothing about others. A condition whose models
mostly did not is shown and left out of the order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np

from gnomon.lab.bootstrap import Interval
from gnomon.lab.cell import Cell, Result
from gnomon.lab.seeds import above, agreement, median

Numbers = tuple[float | None, ...]
Holds = Literal["holds", "reversed", "undecided"]
Verdict = Literal["appears", "in_part", "unsettled", "absent", "nothing", "few"]
FEWEST = 3  # seeds without which there is no verdict
PART = 1 / 3  # of Kendall's tau: two pairs of three agree


@dataclass(frozen=True)
class Condition:
    """One of the things compared.

    published  its numbers by column; None where the publication has none
    cell       the small experiment of a seed; read: its numbers by column; learned: whether it may be judged
    """

    label: str
    published: Numbers
    cell: Callable[[int], Cell]
    read: Callable[[Result], Numbers]
    learned: Callable[[Result], bool]


@dataclass(frozen=True)
class Reproduction:
    """A published comparison and ours. Texts are keys of the glossary's group "reproduce".

    ranked   the columns in which conditions are put in order
    higher   whether larger numbers are better; ranks: what is published are ranks, of which 1 is the best
    checked  whether the published numbers were compared with the publication itself
    seeds    for a claim
    """

    name: str
    source: str
    columns: tuple[str, ...]
    ours: tuple[str, ...]  # what the columns are at our size
    conditions: tuple[Condition, ...]
    ranked: tuple[int, ...]
    higher: bool
    ranks: bool = False
    checked: bool = True
    seeds: int = 5

    def better(self, one: float, other: float) -> bool:
        """Whether a published number is better than another."""
        return one > other if self.higher and not self.ranks else one < other

    def cells(self, seeds: int) -> list[Cell]:
        """All of them; conditions may share some."""
        return [c.cell(seed) for seed in range(seeds) for c in self.conditions]


@dataclass(frozen=True)
class Measured:
    """What came out for one condition: numbers by column and seed, and how many seeds learned."""

    condition: Condition
    numbers: list[list[float | None]]  # (columns, seeds)
    learned: list[bool]

    @property
    def judged(self) -> bool:
        """Whether most of its models learned what they were trained on."""
        return 2 * sum(self.learned) > len(self.learned)

    def median(self, column: int) -> Interval | None:
        """Over seeds; None where a model has no number."""
        values = self.numbers[column]
        return None if any(x is None for x in values) else median([x for x in values if x is not None])


@dataclass(frozen=True)
class Pair:
    """Two published numbers of a column that differ, the better one first, and whether ours differ so too."""

    better: str
    worse: str
    at: str  # the published column
    difference: Interval  # of ours, better - worse, such that above 0 is as published
    holds: Holds


@dataclass(frozen=True)
class Outcome:
    """The order of all that could be judged."""

    measured: list[Measured]
    tau: Interval | None
    pairs: list[Pair]
    verdict: Verdict

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "conditions": [
                {
                    "label": m.condition.label,
                    "published": m.condition.published,
                    "ours": m.numbers,
                    "learned": m.learned,
                }
                for m in self.measured
            ],
            "kendall_tau": self.tau and vars(self.tau),
            "pairs": [{**vars(pair), "difference": vars(pair.difference)} for pair in self.pairs],
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class Item:
    """A number that is ranked among those of its column."""

    name: str
    column: int
    published: float
    ours: list[float]


def outcome(r: Reproduction, results: Callable[[Cell], Result], seeds: int) -> Outcome:
    """Judge results of all cells."""
    measured = []
    for c in r.conditions:
        found = [results(c.cell(seed)) for seed in range(seeds)]
        read = [c.read(result) for result in found]
        numbers = [[one[i] for one in read] for i in range(len(r.columns))]
        measured.append(Measured(c, numbers, [c.learned(result) for result in found]))
    items = _items(r, measured)
    pairs = _pairs(r, items)
    of = [item.column for item in items]
    sign = -1 if r.ranks and r.higher else 1
    tau = agreement([sign * i.published for i in items], [i.ours for i in items], of) if pairs else None
    return Outcome(measured, tau, pairs, _verdict(tau, pairs, seeds))


def _items(r: Reproduction, measured: Sequence[Measured]) -> list[Item]:
    items = []
    for m in measured:
        for column in r.ranked:
            published, ours = m.condition.published[column], m.numbers[column]
            if m.judged and published is not None and all(x is not None for x in ours):
                items.append(Item(m.condition.label, column, published, [float(x) for x in ours if x is not None]))
    return items


def _pairs(r: Reproduction, items: Sequence[Item]) -> list[Pair]:
    sign = 1 if r.higher else -1
    pairs = []
    for a, b in combinations(items, 2):
        if a.column != b.column or a.published == b.published:
            continue
        better, worse = (a, b) if r.better(a.published, b.published) else (b, a)
        ours = above((sign * np.array(better.ours)).tolist(), (sign * np.array(worse.ours)).tolist())
        holds: Holds = "holds" if ours.low > 0 else "reversed" if ours.high < 0 else "undecided"
        pairs.append(Pair(better.name, worse.name, r.columns[a.column], ours, holds))
    return pairs


def _verdict(tau: Interval | None, pairs: Sequence[Pair], seeds: int) -> Verdict:
    """appears: every published difference holds, surely. in_part: two pairs of three or more agree, surely. unsettled:
    as many may agree, but these seeds do not settle it. absent: fewer do. nothing: nothing could be judged."""
    if tau is None:
        return "nothing"
    if seeds < FEWEST:
        return "few"
    if all(pair.holds == "holds" for pair in pairs):
        return "appears"
    if tau.low >= PART:
        return "in_part"
    return "unsettled" if tau.high >= PART else "absent"


__all__ = ["Condition", "Item", "Measured", "Numbers", "Outcome", "Pair", "Reproduction", "Verdict", "outcome"]
