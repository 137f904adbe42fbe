"""DecodingBatch: rows that a model reads together, one forward a step, whatever their lengths.

Strategies drive it: read, keep (go on with these rows, which may be repeated), forget (take back what was read), fits.
"""

import math
from bisect import bisect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Literal

import torch
from torch import nn

from gnomon.attention import Cache, PreallocatedCache
from gnomon.errors import BadValue
from gnomon.generate.model import LanguageModel
from gnomon.layout import Layout
from gnomon.positions.base import position_dtype
from gnomon.shapes import Bool, Float, Int

CacheKind = Literal["growing", "preallocated", "rolling"]


class DecodingBatch:
    """What B rows have read so far, which is in the cache, and how they read on.

    Rows that end leave the batch and the cache. A cache that the caller holds keeps all its rows instead: those that
    have ended wait in it as padding, so that they can be continued later.
    """

    def __init__(self, model: LanguageModel, B: int, cache: Cache, held: bool) -> None:
        """held: whether the cache is the caller's, with whatever it already contains."""
        if cache.at is not None and cache.at.shape[0] != B:
            raise BadValue(f"the cache holds {cache.at.shape[0]} rows but there are {B} prompts")
        self.model, self.cache, self.held = model, cache, held
        self.B, self.going = B, list(range(B))  # rows of the cache; those of them that are still written
        self.device = next((weight.device for weight in model.parameters()), torch.device("cpu"))

    def check(self, rows: Sequence[Sequence[int]], more: int) -> None:
        """Raise BadValue if the model has no positions for these tokens, naming the row and its length, or if the
        cache has no room for them and `more` slots after them."""
        room, need = self._room(), max(map(len, rows)) + more
        if need > room:
            raise BadValue(
                f"the cache has room for {room} more tokens, but the longest prompt and max_new_tokens need {need}: "
                f"lower max_new_tokens by {need - room}, or build the cache with more capacity"
            )
        at = self._place(self._padded(rows)[1])
        for n, row in enumerate(rows):
            try:
                self.model.check(at.rows(self._index([n])))
            except BadValue as error:
                raise BadValue(f"prompt {n} is too long, it has {len(row)} tokens: {error}") from error

    def read(self, rows: Sequence[Sequence[int]]) -> Float:
        """Read these tokens of each row still going; logits (B', V) of what follows them."""
        with evaluation_mode(self.model):
            return self._logits(self._hidden(rows)[:, -1:])[:, 0]

    def hidden(self, rows: Sequence[Sequence[int]]) -> Float:
        """Read these tokens of each row still going, which may be none; hidden states (B', T, D), each row's own in
        the last columns: padding is on the left."""
        with evaluation_mode(self.model):
            return self._hidden(rows)

    def _hidden(self, rows: Sequence[Sequence[int]]) -> Float:
        ids, mask = self._padded(rows)
        with torch.no_grad():
            h = self.model.hidden(ids, self._place(mask), self.cache)
        return h if len(self.going) == self.B else h[self._index(self.going)]

    def logits(self, h: Float) -> Float:
        """Hidden states (B', T, D) -> logits (B', T, V), float32 or wider."""
        with evaluation_mode(self.model):
            return self._logits(h)

    def _logits(self, h: Float) -> Float:
        with torch.no_grad():
            logits = self.model.head(h)
        return logits.to(position_dtype(logits.dtype))

    def fits(self, n: int) -> list[int]:
        """Of each row still going, for how many of its next `n` tokens the model has positions."""
        at = Layout.dense(self.B, n, self.device) if self.cache.at is None else self.cache.then(n)
        at = at.rows(self._index(self.going))
        if self._fits(at):
            return [n] * len(self.going)
        rows = [at.rows(self._index([row])) for row in range(len(self.going))]
        return [bisect(range(1, n + 1), False, key=lambda m: not self._fits(row.tokens(slice(0, m)))) for row in rows]

    def full(self) -> list[bool]:
        """Of each row still going, whether the model has no position for one more token."""
        return [m == 0 for m in self.fits(1)]

    def keep(self, rows: Sequence[int]) -> None:
        """Go on with these of the rows still going, in this order. Each may be repeated, but in a held cache."""
        if self.held:
            self.going = [self.going[n] for n in rows]
        elif list(rows) != self.going:
            self.cache.reorder(self._index(rows))
            self.B, self.going = len(rows), list(range(len(rows)))

    def forget(self, last: Sequence[int]) -> None:
        """Take back the `last` tokens that each row still going has read."""
        if self.cache.at is None or not any(last):
            return
        at, back = self.cache.at, torch.zeros(self.B, dtype=torch.long)
        back[self.going] = torch.tensor(list(last))
        read = torch.where(at.real, at.step, -1).amax(1) + 1
        self.cache.crop((read - back.to(at.device)).clamp(min=0))

    def fork(self) -> "DecodingBatch":
        """Another batch that has read the same, in a cache of its own, which is not held."""
        cache = copy(self.cache)
        cache.k, cache.v = dict(cache.k), dict(cache.v)
        cache.reorder(self._index(range(self.B)))  # copies: a preallocated cache writes in place
        return DecodingBatch(self.model, self.B, cache, held=False)

    def _padded(self, rows: Sequence[Sequence[int]]) -> tuple[Int, Bool]:
        """Ids (B, T) and where they are real: rows start with padding, so that all end in the last column."""
        T = max(len(row) for row in rows)
        padding = self.model.config.padding_id or 0
        ids = torch.full((self.B, T), padding)
        mask = torch.zeros(self.B, T, dtype=torch.bool)
        for b, row in zip(self.going, rows, strict=True):
            ids[b, T - len(row) :] = torch.tensor(row)
            mask[b, T - len(row) :] = True
        return ids.to(self.device), mask

    def _place(self, mask: Bool) -> Layout:
        """Where the real tokens of `mask` (B, T) sit: after what the cache holds of their row."""
        whole, mask = bool(mask.all()), mask.to(self.device)
        if self.cache.at is None:
            return Layout.dense(self.B, mask.shape[1], self.device) if whole else Layout.padded(mask)
        at = self.cache.then(mask.shape[1])
        if whole:
            return at
        late = (~mask).sum(1, keepdim=True)  # how many columns after the first each row starts
        doc = torch.where(mask, 0 if at.doc is None else at.doc, -1)
        return replace(
            at, pos=(at.pos - late).clamp(min=0), step=at.step - late, doc=doc, length=at.length - late, kind="padded"
        )

    def _room(self) -> float:
        """How many more tokens a row may read."""
        return self.cache.capacity - len(self.cache) if isinstance(self.cache, PreallocatedCache) else math.inf

    def _fits(self, at: Layout) -> bool:
        try:
            self.model.check(at)
        except BadValue:
            return False
        return True

    def _index(self, rows: Sequence[int]) -> Int:
        return torch.tensor(rows, dtype=torch.long, device=self.device)


@contextmanager
def evaluation_mode(model: LanguageModel | nn.Module) -> Iterator[None]:
    """All parts of the model in evaluation mode; afterwards each is in the mode it was in."""
    training = _in_training(model)
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True


def _in_training(model: LanguageModel | nn.Module) -> list[nn.Module]:
    """The parts that are in training mode. It is asked at every step, and `modules()` takes a millisecond of it."""
    if not isinstance(model, nn.Module):
        return [part for part in model.modules() if part.training]
    parts: list[nn.Module | None] = [model]
    for part in parts:  # which grows
        if part is not None and part._modules:
            parts.extend(part._modules.values())
    return [part for part in parts if part is not None and part.training]


__all__ = ["CacheKind", "DecodingBatch", "evaluation_mode"]
