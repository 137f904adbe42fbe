"""How sure a number is over seeds: medians, and orders of several models, with their bootstrap intervals.

Seeds are drawn with replacement as often as there are (Efron 1979), the same draw for all models, since models of one
seed share their data and their first weights. With five seeds an interval is coarse: it is what five seeds can say.
"""

from collections.abc import Sequence
from itertools import combinations
from math import sqrt

import numpy as np

from gnomon.errors import BadValue
from gnomon.lab.bootstrap import LEVEL, Interval
from gnomon.lab.protocols import Floats

DRAWS = 2000


def draws(n: int, seed: int = 0) -> "np.ndarray[tuple[int, int], np.dtype[np.int64]]":
    """(1 + DRAWS, n) seeds: as they are, then drawn with replacement."""
    rng = np.random.default_rng(seed)
    return np.concatenate([np.arange(n)[None], rng.integers(n, size=(DRAWS, n))])


def between(samples: Sequence[float] | Floats) -> Interval:
    """The first of them, and what holds 95 % of the others."""
    low, high = np.quantile(samples[1:], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(samples[0]), float(low), float(high))


def median(values: Sequence[float]) -> Interval:
    """The median over seeds and its interval."""
    if not len(values):
        raise BadValue("a median needs at least one value")
    return between(np.median(np.asarray(values, dtype=float)[draws(len(values))], axis=1))


def kendall(x: Sequence[float], y: Sequence[float], group: Sequence[int] | None = None) -> float:
    """Kendall's tau-b of two lists: 1 for the same order, -1 for the opposite one, ties counted as ties (Kendall 1945,
    "The treatment of ties in ranking problems", section 5). 0 where one of them has no order at all.

    group: only pairs of the same group count, where the list holds several orders one after another
    """
    if len(x) != len(y) or len(x) < 2:
        raise BadValue(f"an order needs two lists of the same length, 2 or more; got {len(x)} and {len(y)}")
    of = [0] * len(x) if group is None else group
    pairs = [(i, j) for i, j in combinations(range(len(x)), 2) if of[i] == of[j]]
    a, b = (np.sign([float(v[i]) - float(v[j]) for i, j in pairs]) for v in (x, y))
    scale = sqrt(float((a != 0).sum()) * float((b != 0).sum()))
    return float((a * b).sum() / scale) if scale else 0.0


def agreement(
    published: Sequence[float], ours: Sequence[Sequence[float]], group: Sequence[int] | None = None
) -> Interval:
    """Kendall's tau between published numbers (models) and the medians over seeds of ours (models, seeds), with its
    interval over seeds."""
    found = np.asarray(ours, dtype=float)
    medians = np.median(found[:, draws(found.shape[1])], axis=2)  # (models, draws)
    return between([kendall(published, column, group) for column in medians.T])


def above(one: Sequence[float], other: Sequence[float]) -> Interval:
    """The median over seeds of one model less that of another, of the same seeds."""
    a, b = (np.asarray(values, dtype=float) for values in (one, other))
    drawn = draws(len(a))
    return between(np.median(a[drawn], axis=1) - np.median(b[drawn], axis=1))


__all__ = ["above", "agreement", "between", "draws", "kendall", "median"]
