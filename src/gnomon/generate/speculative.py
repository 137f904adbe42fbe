"""Speculative decoding: a small model drafts, the large one checks all of it at once (Leviathan et al. 2023)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from gnomon.errors import BadValue, check_arguments
from gnomon.generate.decoding_batch import DecodingBatch
from gnomon.generate.logits import inverse_cdf
from gnomon.generate.model import LanguageModel, ReadsSource
from gnomon.generate.row import Row, Token
from gnomon.generate.rules import Rules
from gnomon.generate.search import Search
from gnomon.generate.source import read_sources
from gnomon.generate.strategies import GREEDY, Distribution
from gnomon.generate.verify import Draft, Drafter, write_verified
from gnomon.shapes import Float


@check_arguments
@dataclass(frozen=True)
class Speculative(Search):
    """Exactly what `strategy` writes with the large model, in fewer of its forwards the better the draft model is.

    draft      a model with the same vocabulary, of any architecture; one that reads a source reads the same one
    strategy   Greedy(), Sample(...), or one of yours that can `process` logits; the draft model uses it too
    length     tokens drafted at a time, at most
    """

    draft: LanguageModel
    strategy: Distribution = GREEDY
    length: int = 4

    def __post_init__(self) -> None:
        """Raise BadValue for a setting that cannot be right."""
        if self.length < 1:
            raise BadValue(f"length counts drafted tokens, so it is at least 1; got {self.length}")
        if not self.draft.config.causal:
            raise BadValue("the draft model is bidirectional, so it cannot draft what comes next")

    def slots(self, new: int) -> int:
        """At worst, each step leaves the slots of all but one of its tokens empty."""
        return new * (self.length + 1)

    def rollback(self) -> int:
        """All drafted tokens."""
        return self.length

    def write(self, batch: DecodingBatch, rows: list[Row], rules: Rules) -> Iterator[Token]:
        """One forward of the large model a step for all rows, whatever each of them accepts."""
        self._check(batch.model, rows)
        return write_verified(
            batch, rows, rules, ModelDrafter(self.draft, rows, rules, self.strategy), self.strategy, self.length
        )

    def _check(self, model: LanguageModel, rows: Sequence[Row]) -> None:
        ours, theirs = model.config.vocab_size, self.draft.config.vocab_size
        if ours != theirs:
            raise BadValue(
                f"the draft model has {theirs} tokens and the model {ours}: they must share a vocabulary. Train the "
                "draft with the model's tokenizer, or resize() its table"
            )
        both = [m.tokenizer.sha256 for m in (model, self.draft) if m.tokenizer is not None]
        if len(set(both)) > 1:
            raise BadValue("the draft model has another tokenizer: its ids mean other texts")
        if isinstance(self.draft, ReadsSource) and not all(row.source_ids for row in rows):
            raise BadValue("the draft model is an encoder-decoder and there is no source that it could read")


class ModelDrafter(Drafter):
    """A model that drafts. It reads what the rows kept and forgets what they did not."""

    def __init__(self, model: LanguageModel, rows: Sequence[Row], rules: Rules, strategy: Distribution) -> None:
        cache = model.cache()
        self.batch = DecodingBatch(model, len(rows), cache, held=False)
        if isinstance(model, ReadsSource):
            cache.memory = read_sources(model, [row.source_ids for row in rows], self.batch.device)
        self.rules, self.strategy = rules, strategy
        self.rows = list(rows)  # those of the batch
        self.read: list[list[int]] = [[] for _ in rows]  # the ids that it holds of each

    def draft(self, rows: Sequence[Row], most: Sequence[int]) -> list[Draft]:
        """Token by token, one forward for all rows that are to have another."""
        self._follow(rows)
        texts = [[*row.prompt_ids, *row.ids] for row in rows]
        unread = [text[len(read) :] for text, read in zip(texts, self.read, strict=True)]
        fits = self.batch.fits(max(map(len, unread)) + max(most))
        rooms = [room - len(ids) + 1 for room, ids in zip(fits, unread, strict=True)]  # the last one is not read
        most = [max(0, min(both)) for both in zip(most, rooms, strict=True)]
        drafts = [Draft([], []) for _ in rows]
        for step in range(max(most)):
            chunk = [
                (unread[n] if step == 0 else drafts[n].ids[-1:]) if step < most[n] else [] for n in range(len(rows))
            ]
            if not any(chunk):
                break
            logits = self.batch.read(chunk)
            self.read = [[*read, *ids] for read, ids in zip(self.read, chunk, strict=True)]
            asked = [n for n, ids in enumerate(chunk) if ids]
            for n in self._propose(rows, logits, drafts, asked):
                most[n] = 0
        return drafts

    def _follow(self, rows: Sequence[Row]) -> None:
        """Drop rows that have ended, and forget what was drafted and not kept."""
        places = [next(n for n, mine in enumerate(self.rows) if mine is row) for row in rows]
        self.batch.keep(places)
        self.rows, self.read = list(rows), [self.read[n] for n in places]
        kept = [_common(read, [*row.prompt_ids, *row.ids]) for row, read in zip(rows, self.read, strict=True)]
        wrong = [len(read) - n for read, n in zip(self.read, kept, strict=True)]
        self.batch.forget(wrong)
        self.read = [read[:n] for read, n in zip(self.read, kept, strict=True)]

    def _propose(
        self, rows: Sequence[Row], logits: Float, drafts: Sequence[Draft], asked: Sequence[int]
    ) -> Iterator[int]:
        """Draft one more token for the rows `asked`; those that the constraints leave none."""
        own = logits[torch.tensor(asked, device=logits.device)]
        allowed = self.rules.apply(own, [rows[n].history(drafts[n].ids) for n in asked]).allowed
        alive = allowed.amax(-1, keepdim=True).isfinite()
        q = self.strategy.process(allowed.where(alive, 0.0)).softmax(-1).cpu()
        for n, chances, goes_on in zip(asked, q, alive[:, 0].tolist(), strict=True):
            if goes_on:
                u = torch.rand(1, generator=rows[n].rng, dtype=torch.float64)
                drafts[n].ids.append(int(inverse_cdf(chances.log()[None], u)[0]))
                drafts[n].q.append(chances)
            else:
                yield n


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    """The number of tokens with which both begin."""
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


__all__ = ["ModelDrafter", "Speculative"]
