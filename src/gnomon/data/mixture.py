"""Mixture: batches whose rows come from several streams, each with its share of them.

Of every BLOCK rows a stream has as many as its weight says, to a whole row, in an order that is drawn anew for each
block. Which row comes from where is a function of the seed and the number of the row alone, and each stream is gone
through in its own shuffled passes, as if it were alone: a small one is seen more often than a large one.
"""

from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np

from gnomon.data.batch import LMBatches
from gnomon.data.store import Ints, TokenStore
from gnomon.errors import BadValue

BLOCK = 10_000


class Mixture:
    """What `LMBatches` is for one stream, for several."""

    def __init__(self, stores: Sequence[TokenStore], weights: Sequence[float], batch_size: int, length: int, seed: int):
        """weights: of each stream, in whatever unit. BadValue for a weight that is no share of BLOCK rows."""
        if len(weights) != len(stores):
            raise BadValue(f"{len(stores)} sources need as many weights, got {len(weights)}")
        if not all(isfinite(weight) and weight > 0 for weight in weights):
            raise BadValue(f"weights of sources must be numbers above 0, got {', '.join(f'{w:g}' for w in weights)}")
        self._parts = [LMBatches(store, batch_size, length, seed) for store in stores]
        self._counts = shares(weights, BLOCK)
        if 0 in self._counts:
            raise BadValue(f"a weight below 1 part in {BLOCK} gives a source no row: leave it out, or give it more")
        self._batch_size, self._length, self._seed = batch_size, length, seed
        self._block: tuple[int, Ints, Ints] | None = None

    def batch(self, step: int) -> "np.ndarray[Any, np.dtype[np.int64]]":
        """(B, length + 1) token ids."""
        rows = [store.tokens[start : start + self._length + 1] for store, start in self.places(step)]
        return np.stack(rows).astype(np.int64)

    def places(self, step: int) -> list[tuple[TokenStore, int]]:
        """The stream of each row, and where it begins there."""
        found = []
        for n in range(step * self._batch_size, (step + 1) * self._batch_size):
            sources, ranks = self._order(n // BLOCK)
            source = int(sources[n % BLOCK])
            number = n // BLOCK * self._counts[source] + int(ranks[n % BLOCK])
            found.append(self._parts[source].place(number))
        return found

    def _order(self, block: int) -> tuple[Ints, Ints]:
        """The source of each row of a block, and how many rows of that source came before it in the block."""
        if self._block is None or self._block[0] != block:
            whole = np.repeat(np.arange(len(self._counts)), self._counts)
            sources = np.random.default_rng([self._seed, block, len(whole)]).permutation(whole)
            ranks = np.empty_like(sources)
            for source, count in enumerate(self._counts):
                ranks[sources == source] = np.arange(count)
            self._block = block, sources, ranks
        return self._block[1], self._block[2]


def shares(weights: Sequence[float], total: int) -> list[int]:
    """Whole numbers in the ratio of weights that add up to `total`: what is left over goes to the largest remainders.

    >>> shares([1, 1, 1], 10)
    [4, 3, 3]
    """
    exact = np.array(weights, dtype=np.float64) / sum(weights) * total
    counts = np.floor(exact).astype(int)
    for n in np.argsort(counts - exact, kind="stable")[: total - counts.sum()]:
        counts[n] += 1
    return [int(count) for count in counts]


__all__ = ["BLOCK", "Mixture", "shares"]
