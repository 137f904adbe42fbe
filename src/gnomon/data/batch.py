"""Windows of a token stream: the batches a language model trains on, and the fixed windows it is measured on."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from gnomon.data.store import Ints, TokenStore
from gnomon.errors import BadInput, BadValue


class LMBatches:
    """An endless, repeatable sequence of batches; ``batch(step)`` depends on nothing but the arguments and ``step``.

    The stream is cut into windows of ``length`` + 1 tokens which share one token with the next, so that each token is
    a target once; a pass takes all windows in shuffled order, and every pass cuts at other places. Windows run across
    documents, with end-of-text between. Training resumes at any step by asking for that step.
    """

    def __init__(self, store: TokenStore, batch_size: int, length: int, seed: int = 0) -> None:
        """Draw batches of ``batch_size`` windows with ``length`` targets each."""
        _at_least_one("batch_size", batch_size)
        fitting = _count_windows(store, length)
        self.windows_per_pass: int = max(1, fitting - 1)  # one less than would fit leaves room to cut elsewhere
        self._store, self._batch_size, self._length, self._seed = store, batch_size, length, seed
        self._passes: dict[int, Ints] = {}

    def batch(self, step: int) -> "np.ndarray[Any, np.dtype[np.int64]]":
        """(B, length + 1) token ids: the inputs are ``[:, :-1]`` and the targets ``[:, 1:]``."""
        if step < 0:
            raise BadValue(f"step is {step}, but steps count from 0")
        numbers = np.arange(step * self._batch_size, (step + 1) * self._batch_size)
        starts = np.array(
            [self._starts(n // self.windows_per_pass)[n % self.windows_per_pass] for n in numbers.tolist()]
        )
        return self._store.tokens[starts[:, None] + np.arange(self._length + 1)].astype(np.int64)

    def place(self, number: int) -> tuple[TokenStore, int]:
        """The stream, and where window `number` of all passes begins there."""
        return self._store, int(self._starts(number // self.windows_per_pass)[number % self.windows_per_pass])

    def places(self, step: int) -> list[tuple[TokenStore, int]]:
        """The same of each row of a batch."""
        return [self.place(n) for n in range(step * self._batch_size, (step + 1) * self._batch_size)]

    def _starts(self, number: int) -> Ints:
        """Where the windows of one pass begin, in the order they are drawn."""
        if number not in self._passes:
            rng = np.random.default_rng([self._seed, number])
            slack = len(self._store.tokens) - 1 - self.windows_per_pass * self._length
            starts = rng.integers(slack, endpoint=True) + self._length * rng.permutation(self.windows_per_pass)
            self._passes = {number: starts}  # steps are asked for in order, so one pass is kept
        return self._passes[number]


@dataclass(frozen=True)
class EvalWindows:
    """Windows whose targets are all different tokens of the stream, and the text they stand for."""

    ids: Ints  # (windows, length + 1), a view of the stream: convert to int64 batch by batch
    n_bytes: Ints  # (windows,) UTF-8 bytes of each window's targets
    lengths: list[list[int]] | None = None  # tokens of each document in a window, where documents are kept apart


def windows_for_eval(store: TokenStore, length: int, limit: int | None = None, apart: bool = False) -> EvalWindows:
    """Cut the stream into non-overlapping windows with ``length`` targets each; the tail that fills none is left out.

    ``limit`` keeps that many of them, evenly spread over the stream. Kept ``apart``, no document sees another, and its
    first token in a window is no target.
    """
    count = _count_windows(store, length)
    if limit is not None:
        _at_least_one("limit", limit)
    every = np.lib.stride_tricks.sliding_window_view(store.tokens, length + 1)[::length]
    chosen = np.arange(count) if limit is None or limit >= count else np.arange(limit) * count // limit
    ids = every if len(chosen) == count else every[chosen]
    n_bytes = store.byte_lengths[ids[:, 1:]]
    if not apart:
        return EvalWindows(ids, n_bytes.sum(axis=1))
    lengths = [document_lengths(store, int(n) * length, length + 1) for n in chosen]
    for row, parts in zip(n_bytes, lengths, strict=True):
        row[np.cumsum(parts)[:-1] - 1] = 0
    return EvalWindows(ids, n_bytes.sum(axis=1), lengths)


def document_lengths(store: TokenStore, start: int, n: int) -> list[int]:
    """How the `n` tokens from `start` divide into documents; the end of text belongs to the document before it."""
    first, last = np.searchsorted(store.starts, [start + 1, start + n])
    edges = [0, *(int(at) - start for at in store.starts[first:last]), n]
    return [right - left for left, right in pairwise(edges) if right > left]


def long_documents(store: TokenStore, min_tokens: int) -> Ints:
    """Indices of the documents with at least ``min_tokens`` tokens, in order."""
    return np.flatnonzero(store.ends - store.starts >= min_tokens)


def bits_per_byte(nats: float, n_bytes: int) -> float:
    """Total surprise in nats over the text's UTF-8 bytes, in bits: comparable between tokenizers."""
    return nats / (math.log(2) * n_bytes)


def _count_windows(store: TokenStore, length: int) -> int:
    """How many windows fit into the stream; BadInput where none does."""
    _at_least_one("length", length)
    if len(store.tokens) <= length:
        raise BadInput(
            f"the text has {len(store.tokens)} tokens, but one window of length {length} needs {length + 1}: "
            f"use more text or a length of at most {len(store.tokens) - 1}"
        )
    return (len(store.tokens) - 1) // length


def _at_least_one(name: str, value: int) -> None:
    if value < 1:
        raise BadValue(f"{name} is {value}, but must be at least 1")
