"""Measure: a number about a model, and how far it could be off because it was measured on a sample.

Means and other statistics get the bootstrap's interval (Efron 1979): units that are independent of each other
(documents, windows, sentences) are drawn with replacement as often as there are, and the statistic of each draw is
taken. Shares get Wilson's (1927), which is right even where nothing or everything was hit.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gnomon.errors import BadValue

DRAWS = 1000
LEVEL = 0.95
Z = 1.959963984540054  # the normal deviate that leaves (1 - LEVEL) / 2 on either side

Floats = np.ndarray[Any, np.dtype[np.floating[Any]]]


@dataclass(frozen=True)
class Measure:
    """A value, and the interval that holds the true one with 95 % confidence."""

    value: float
    low: float
    high: float
    count: int  #: units it was measured on
    note: str = ""  #: what a reader has to know who would take the value for what it is not

    def map(self, f: Callable[[float], float]) -> "Measure":
        """The same of a quantity that grows with this one, such as exp(loss)."""
        return replace(self, value=f(self.value), low=f(self.low), high=f(self.high))


def bootstrap(statistic: Callable[[Floats], float], n: int) -> Measure:
    """A statistic of `n` units, told how often (n,) each of them is counted; the draws are the same each time."""
    _some(n)
    value = statistic(np.ones(n))
    rng, even = np.random.default_rng(0), np.full(n, 1 / n)
    drawn = [statistic(rng.multinomial(n, even).astype(np.float64)) for _ in range(DRAWS)]
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Measure(float(value), float(low), float(high), n)


def ratio(totals: Floats, counts: Floats) -> Measure:
    """sum(totals) / sum(counts) over units, such as nats per token: units with more tokens weigh more."""
    return bootstrap(lambda times: float(times @ totals) / max(float(times @ counts), 1e-300), len(totals))


def share(hits: int, n: int) -> Measure:
    """hits / n. Wilson 1927, "Probable inference, the law of succession, and statistical inference"."""
    _some(n)
    p, z2 = hits / n, Z * Z
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    reach = Z / (1 + z2 / n) * (p * (1 - p) / n + z2 / (4 * n * n)) ** 0.5
    return Measure(p, max(0.0, min(p, middle - reach)), min(1.0, max(p, middle + reach)), n)


def _some(n: int) -> None:
    if n < 1:
        raise BadValue("nothing is held out, so there is nothing to measure on")


__all__ = ["Measure", "bootstrap", "ratio", "share"]
