"""Loss by position: how well a model guesses the first tokens of long documents, the next ones, and those far out.

A model that reads on past its trained length shows it here: its loss falls or stays level as the context grows, where a
broken one's rises. Every window begins where its document begins, so that position n has n tokens before it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gnomon.data import Corpus, Tokenizer
from gnomon.data.store import Ints
from gnomon.errors import BadInput, BadValue
from gnomon.lab.protocols import Floats, has_positions, nats_per_token
from gnomon.models import DecoderOnly
from gnomon.train.measure import Measure, ratio

FIRST = 64  # tokens of the first stretch, at most; each of the others is as long as all before it
FEWEST = 4  # stretches, so that there is a curve to be seen in a short text too
LONGEST = 16  # bytes a token is at most taken to stand for, when documents are chosen that may be long enough


@dataclass(frozen=True)
class Stretch:
    """Nats per token at positions start .. stop - 1, with the interval over documents; None where the model ends."""

    start: int
    stop: int
    nats: Measure | None


def beginnings(corpus: Corpus, tokenizer: Tokenizer, length: int, documents: int) -> Ints:
    """(n, length + 1) ids: the beginnings of up to `documents` documents that are long enough, evenly spread.

    Raises BadInput where the corpus has fewer than two of them.
    """
    if length < 2 or documents < 2:
        raise BadValue(f"loss by position needs 2 documents or more and 2 tokens of each, got {documents} and {length}")
    candidates = [document for document in corpus.documents if document.n_bytes > length]
    order = _spread(len(candidates))
    found = []
    for n in order:
        ids = tokenizer.encode(candidates[n].text[: LONGEST * (length + 1)])
        if len(ids) > length:
            found.append(ids[: length + 1])
        if len(found) == documents:
            break
    if len(found) < 2:
        raise BadInput(
            f"loss by position needs 2 documents of more than {length} tokens; the text has {len(found)} of "
            f"that length among {len(corpus.documents)}: give more or longer ones, or measure a shorter length"
        )
    return np.array(found, dtype=np.int64)


def by_position(model: DecoderOnly, rows: Ints, on_document: Callable[[], object] = lambda: None) -> list[Stretch]:
    """The stretches of rows (n, length + 1), as far as the model has positions for them; `on_document` is called after
    each row."""
    length = rows.shape[1] - 1
    reach = length if has_positions(model, length) else _reach(model, length)
    each: list[Floats] = []
    for row in rows[:, : reach + 1]:
        each.append(nats_per_token(model, row[None], reach))
        on_document()
    nats = np.concatenate(each)
    return [
        Stretch(start, stop, ratio(nats[:, start:stop].sum(1), np.full(len(rows), float(stop - start))))
        if stop <= reach
        else Stretch(start, stop, None)
        for start, stop in stretches(length)
    ]


def stretches(length: int) -> list[tuple[int, int]]:
    """0 to 64, 64 to 128, 128 to 256 and so on up to `length`; from 0 to 32, 16, ... where there would be fewer than
    four."""
    first = FIRST
    while first > 1 and first * 2 ** (FEWEST - 1) > length:
        first //= 2
    edges = [0]
    while edges[-1] < length:
        edges.append(min(length, max(first, 2 * edges[-1])))
    return list(pairwise(edges))


def _reach(model: DecoderOnly, length: int) -> int:
    """The longest beginning of `length` tokens that the model has positions for."""
    low, high = 0, length
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if has_positions(model, middle) else (low, middle - 1)
    return low


def _spread(n: int) -> Sequence[int]:
    """All numbers below n in an order whose beginnings are spread evenly: by their digits read backwards."""
    width = max(n - 1, 1).bit_length()
    return [i for i in (int(format(j, f"0{width}b")[::-1], 2) for j in range(2**width)) if i < n]


__all__ = ["Stretch", "beginnings", "by_position", "stretches"]
