"""Search: the one interface of everything that writes.

A search drives a batch. Whatever it looks into on the way, it hands each row its tokens in their order, and once handed
over a token stays. A strategy that only chooses among the next tokens is one too, through `Stepwise`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from gnomon.generate.decoding_batch import DecodingBatch
from gnomon.generate.row import Row, Token
from gnomon.generate.rules import Rules
from gnomon.generate.strategies import Chooser


class Search(ABC):
    """Base of the strategies that look further than one token of one text."""

    in_place: ClassVar[bool] = False  #: whether it reads each token once and for all, so that a held cache can be used

    @abstractmethod
    def write(self, batch: DecodingBatch, rows: list[Row], rules: Rules) -> Iterator[Token]:
        """Continue every row until it has a finish_reason. The batch has read nothing of the prompts yet, and is this
        search's to use up: read, keep, forget."""

    def slots(self, new: int) -> int:
        """How many slots of the cache a row needs at most, besides its prompt, for `new` tokens."""
        return new - 1  # the last one is written and not read

    def rollback(self) -> int:
        """How many tokens it takes back at most at once."""
        return 0


@dataclass(frozen=True)
class Stepwise(Search):
    """Look at what may follow, choose, append."""

    chooser: Chooser
    in_place: ClassVar[bool] = True

    def write(self, batch: DecodingBatch, rows: list[Row], rules: Rules) -> Iterator[Token]:
        """One forward a step for all rows; those that have ended are read no more."""
        logits = batch.read([row.prompt_ids for row in rows])  # (B, V)
        while True:
            view = rules.apply_strictly(logits, [row.history() for row in rows])
            ids = self.chooser.choose(view.allowed, [row.rng for row in rows])  # (B,)
            logprobs = view.logprobs().gather(-1, ids[:, None])[:, 0]
            steps = zip(rows, ids.tolist(), logprobs.tolist(), batch.full(), view.best(), strict=True)
            for row, token, logprob, full, top in steps:
                yield row.take(token, logprob, full, top)
            going = [i for i, row in enumerate(rows) if row.finish_reason is None]
            if not going:
                return
            batch.keep(going)
            rows = [rows[i] for i in going]
            logits = batch.read([row.ids[-1:] for row in rows])


__all__ = ["Search", "Stepwise"]
