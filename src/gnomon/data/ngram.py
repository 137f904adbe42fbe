"""The n-gram a language model must beat: an interpolated byte trigram.

    p(w | context) = (c(context w) + N(context) p(w | shorter context)) / (c(context) + N(context))

where c counts occurrences in the training text and N(context) the different bytes seen after the context; the
shortest context is none, below which every byte has 1/256. This is Witten-Bell smoothing (Witten and Bell 1991, method
C; Chen and Goodman 1998 compare it with others), which has nothing to tune and gives every byte a chance.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gnomon.data.corpus import Corpus
from gnomon.data.store import Ints
from gnomon.errors import BadValue

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class _Counts:
    gram: Ints  # (256^n,) occurrences of each n-gram
    context: Ints  # (256^(n-1),) occurrences of its first n - 1 bytes before some byte
    kinds: Ints  # (256^(n-1),) different bytes seen there


class NGramBaseline:
    """Byte n-gram fitted on a corpus; nothing crosses from one document to the next."""

    def __init__(self, corpus: Corpus, order: int = 3) -> None:
        """Count all 1- to ``order``-grams of the documents; ``order`` is at most 3, the largest dense table."""
        if not 1 <= order <= 3:
            raise BadValue(f"order is {order}, but must be 1, 2 or 3")
        self.order = order
        self._counts = [_count(corpus, n) for n in range(1, order + 1)]

    def probability(self, grams: Ints, n: int) -> Floats:
        """Probability of the last byte of each ``n``-gram (a base-256 number) given the bytes before it."""
        if n == 0:
            return np.full(len(grams), 1 / 256)
        counts = self._counts[n - 1]
        context = grams >> 8
        lower = self.probability(grams % 256 ** (n - 1), n - 1)
        kinds, total = counts.kinds[context], counts.context[context]
        seen = np.maximum(kinds + total, 1)
        return np.where(total > 0, (counts.gram[grams] + kinds * lower) / seen, lower)

    def bits(self, data: bytes) -> Floats:
        """(len(data),) surprise in bits at each byte of one document; the first bytes have shorter contexts."""
        parts = [self.probability(_grams(data[:n], n), n) for n in range(1, self.order)]
        parts.append(self.probability(_grams(data, self.order), self.order))
        return -np.log2(np.concatenate(parts))

    def bits_per_byte(self, corpus: Corpus) -> float:
        """Mean surprise in bits over all bytes of a corpus."""
        return float(sum(self.bits(document.data).sum() for document in corpus.documents) / corpus.n_bytes)


def _count(corpus: Corpus, n: int) -> _Counts:
    grams = np.concatenate([_grams(document.data, n) for document in corpus.documents])
    table = np.bincount(grams, minlength=256**n).astype(np.uint32).reshape(-1, 256)
    return _Counts(table.reshape(-1), table.sum(axis=1, dtype=np.int64), np.count_nonzero(table, axis=1))


def _grams(data: bytes, n: int) -> Ints:
    """(len - n + 1,) every run of ``n`` bytes as a number, the first byte highest."""
    values = np.frombuffer(data, dtype=np.uint8).astype(np.int64)
    count = max(0, len(values) - n + 1)
    grams = np.zeros(count, dtype=np.int64)
    for i in range(n):
        grams = grams * 256 + values[i : i + count]
    return grams
