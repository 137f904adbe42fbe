"""Spans: pieces of a text that are of some kind, as one label per token and back, and how well they were found.

For kinds 0, 1, ... a token's label is

    0        outside of every span
    1 + 2k   it begins a span of kind k
    2 + 2k   it goes on with the span of kind k before it

so that spans which touch are told apart (Ramshaw and Marcus 1995, cmp-lg/9505040, in the variant where every span has
a beginning). A sequence in which a label goes on with what is not there means no spans: `best_labels` never gives one.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

Ints = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.floating[Any]]]


class Span(NamedTuple):
    """Characters start..end-1 of a text are of this kind."""

    start: int
    end: int
    kind: str


def label_names(kinds: Sequence[str]) -> tuple[str, ...]:
    """The names of the labels, in the customary spelling: O, B-kind, I-kind.

    >>> label_names(["name", "number"])
    ('O', 'B-name', 'I-name', 'B-number', 'I-number')
    """
    return ("O", *(f"{part}-{kind}" for kind in kinds for part in "BI"))


def kinds_of(names: Sequence[str]) -> list[str]:
    """The kinds behind such names."""
    return [name.removeprefix("B-") for name in names[1::2]]


def to_labels(spans: Iterable[Span], text: str, starts: Ints, kinds: Sequence[str]) -> Ints:
    """(N,) labels of tokens that begin at the characters `starts` (N,) and together cover the text.

    A token is what its first character that is no blank is: byte-pair tokens take the blank before a word along. Spans
    do not overlap. Where two begin in one token, only one can be told; over characters that does not happen.
    """
    at_character = np.zeros(len(text) + 1, np.int64)
    begins = np.zeros(len(text) + 1, bool)
    for start, end, kind in spans:
        at_character[start:end] = 2 + 2 * kinds.index(kind)
        begins[start] = True
    anchors = _anchors(text, starts)
    labels = at_character[anchors]
    return labels - (begins[anchors] & (labels > 0))


def to_spans(labels: Ints, text: str, starts: Ints, kinds: Sequence[str]) -> list[Span]:
    """The spans that labels (N,) stand for, in order: from the first visible character to the end of the last token.

    A label that goes on with a span of another kind, or with none, begins one.
    """
    starts = np.append(starts, len(text))
    kind = np.where(labels > 0, (labels - 1) // 2, -1)
    inside = (labels > 0) & (labels % 2 == 0)
    goes_on = np.append(False, inside[1:] & (kind[1:] == kind[:-1])) if len(labels) else inside
    first = np.flatnonzero((kind >= 0) & ~goes_on)
    ends_at = np.flatnonzero((kind >= 0) & ~np.append(goes_on[1:], False)) + 1 if len(labels) else first
    begin, end = _anchors(text, starts[:-1])[first], starts[ends_at]
    return [Span(int(b), int(e), kinds[k]) for b, e, k in zip(begin, end, kind[first], strict=True) if b < e]


def best_labels(scores: Floats) -> Ints:
    """(N, 1 + 2K) scores of each label for each token -> the (N,) labels that score highest together, of all sequences
    that go on only with what is there (Viterbi 1967)."""
    if not len(scores):
        return np.zeros(0, np.int64)
    begin, inside = slice(1, None, 2), slice(2, None, 2)
    total = scores[0].astype(np.float64)
    total[inside] = -np.inf
    best = np.empty(len(scores), np.int64)  # [t]: the best label of token t - 1, where t may follow anything
    stays = np.empty((len(scores), scores.shape[1] // 2), bool)  # [t]: whether t - 1 was inside, where t is
    for t in range(1, len(scores)):
        best[t] = total.argmax()
        stays[t] = total[inside] > total[begin]
        same = np.where(stays[t], total[inside], total[begin])
        total = scores[t] + total[best[t]]
        total[inside] = scores[t, inside] + same
    labels = np.empty(len(scores), np.int64)
    labels[-1] = total.argmax()
    for t in range(len(scores) - 1, 0, -1):
        now = labels[t]
        goes_on = now > 0 and now % 2 == 0
        labels[t - 1] = (now if stays[t, now // 2 - 1] else now - 1) if goes_on else best[t]
    return labels


class SpanCounts(NamedTuple):
    """Of each kind of span (K,): exact matches, spans predicted, spans in the reference."""

    hits: Ints
    predicted: Ints
    gold: Ints

    @property
    def f1(self) -> Floats:
        """2 hits / (predicted + gold): the harmonic mean of precision and recall; 0 where there is nothing to count."""
        return np.asarray(2 * self.hits / np.maximum(self.predicted + self.gold, 1))


def count_spans(predicted: Iterable[Span], gold: Iterable[Span], kinds: Sequence[str]) -> SpanCounts:
    """Compare spans: one is found where start, end and kind are all right."""
    ours, reference = set(predicted), set(gold)

    def by_kind(spans: set[Span]) -> Ints:
        return np.bincount([kinds.index(span.kind) for span in spans], minlength=len(kinds))

    return SpanCounts(by_kind(ours & reference), by_kind(ours), by_kind(reference))


def _anchors(text: str, starts: Ints) -> Ints:
    """Of each token the first character that is no blank, or its first where it is all blank."""
    visible = np.append(np.flatnonzero([not c.isspace() for c in text]), len(text))
    following = visible[np.searchsorted(visible, starts)]
    ends = np.append(starts[1:], len(text))
    return np.where(following < ends, following, starts)


__all__ = ["Span", "SpanCounts", "best_labels", "count_spans", "kinds_of", "label_names", "to_labels", "to_spans"]
