"""Prompt look-up: what followed the last few tokens before is likely to follow them again.

Leviathan et al. 2023 with a drafter that costs nothing: the row's own text, and its source. It gains where texts are
copied from, as in summaries, edits and code; where nothing is found it is plain decoding.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch.nn.functional import one_hot

from gnomon.errors import BadValue, check_arguments
from gnomon.generate.decoding_batch import DecodingBatch
from gnomon.generate.row import Row, Token
from gnomon.generate.rules import Rules
from gnomon.generate.search import Search
from gnomon.generate.strategies import GREEDY, Distribution
from gnomon.generate.verify import Draft, Drafter, write_verified


@check_arguments
@dataclass(frozen=True)
class Lookup(Search):
    """Exactly what `strategy` writes, often in fewer forwards.

    strategy   Greedy(), Sample(...), or one of yours that can `process` logits
    ngram      the longest run of last tokens that is looked for; shorter ones, down to one token, if it is not found
    length     tokens drafted at a time, at most
    """

    strategy: Distribution = GREEDY
    ngram: int = 3
    length: int = 8

    def __post_init__(self) -> None:
        """Raise BadValue for a setting that cannot be right."""
        if self.ngram < 1 or self.length < 1:
            raise BadValue(f"ngram and length are at least 1, got {self.ngram} and {self.length}")

    def slots(self, new: int) -> int:
        """At worst, each step leaves the slots of all but one of its tokens empty."""
        return new * (self.length + 1)

    def rollback(self) -> int:
        """All drafted tokens."""
        return self.length

    def write(self, batch: DecodingBatch, rows: list[Row], rules: Rules) -> Iterator[Token]:
        """One forward a step for all rows, whatever each of them accepts."""
        drafter = _Echo(self.ngram, batch.model.config.vocab_size, rules)
        return write_verified(batch, rows, rules, drafter, self.strategy, self.length)


@dataclass(frozen=True)
class _Echo(Drafter):
    ngram: int
    vocab_size: int
    rules: Rules

    def draft(self, rows: Sequence[Row], most: Sequence[int]) -> list[Draft]:
        """What followed the longest run of last tokens where it stood last."""
        found = [self._found(row, n) for row, n in zip(rows, most, strict=True)]
        kept = [self.rules.admitted(row.history(), ids) for row, ids in zip(rows, found, strict=True)]
        return [self._certain(ids[:n]) for ids, n in zip(found, kept, strict=True)]

    def _found(self, row: Row, most: int) -> list[int]:
        text = [*row.prompt_ids, *row.ids]
        for n in range(min(self.ngram, len(text)), 0, -1):
            for place in (text, row.source_ids):
                for start in range(len(place) - n - 1, -1, -1):
                    if place[start : start + n] == text[-n:]:
                        return place[start + n : start + n + most]
        return []

    def _certain(self, ids: list[int]) -> Draft:
        ids = ids if all(i < self.vocab_size for i in ids) else []  # a source may have a table of its own
        return Draft(ids, list(one_hot(torch.tensor(ids, dtype=torch.long), self.vocab_size).float()))


__all__ = ["Lookup"]
