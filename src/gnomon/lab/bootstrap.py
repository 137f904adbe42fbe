"""How sure a difference is: the paired bootstrap over documents (Efron 1979; Koehn 2004, section 4, for systems).

Documents are drawn with replacement as often as there are. A quantity is computed for each draw from the same
documents on both sides, so what they have in common, being easy or hard, cancels. Tokens of one document are not
independent of each other, documents are.
"""

from dataclasses import dataclass
from math import log

import numpy as np

from gnomon.lab.protocols import Floats

DRAWS = 2000
LEVEL = 0.95
FEW = 5  # with fewer documents than this, draws of them say nothing about an order


@dataclass(frozen=True)
class Interval:
    """A number and the interval that holds it with 95 % confidence, as far as the choice of documents goes."""

    value: float
    low: float
    high: float

    def __contains__(self, x: float) -> bool:
        return self.low <= x <= self.high


class Bootstrap:
    """The same draws of documents for every question asked of one experiment."""

    def __init__(self, bytes_of_documents: Floats, seed: int = 0) -> None:
        """bytes_of_documents (documents,): of the targets."""
        n = len(bytes_of_documents)
        self.few = n < FEW
        drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=DRAWS)
        self._weights = np.concatenate([np.ones((1, n)), drawn])  # the first draw is what was measured
        self._bytes = self._weights @ bytes_of_documents

    def bits(self, nats: Floats) -> Floats:
        """(1 + draws,) bits per byte of nats (documents,): as measured, then in each draw."""
        found: Floats = self._weights @ nats / (self._bytes * log(2))
        return found

    def bits_per_byte(self, nats: Floats) -> Interval:
        """Bits per byte."""
        return _interval(self.bits(nats))

    def increase(self, nats: Floats, before: Floats) -> Interval:
        """How much more is paid than before, as a share of it: 0.2 is a fifth more."""
        return _interval(self.bits(nats) / self.bits(before) - 1)

    def sure(self, better: Floats, worse: Floats) -> bool:
        """Whether the documents settle that one model pays less than another."""
        return not self.few and self.difference(worse, better).low > 0

    def difference(self, nats: Floats, other: Floats) -> Interval:
        """Bits per byte less those of another model."""
        return _interval(self.bits(nats) - self.bits(other))


def _interval(samples: Floats) -> Interval:
    low, high = np.quantile(samples[1:], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(samples[0]), float(low), float(high))


__all__ = ["Bootstrap", "Interval"]
