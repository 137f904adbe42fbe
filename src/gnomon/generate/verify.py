"""Verify: many tokens a forward, and exactly the distribution of one at a time.

Somebody drafts a few tokens, the model reads all of them at once, and each is taken with probability

    min(1, p(x) / q(x));   at the first that is not, one is drawn from  max(0, p - q) / sum max(0, p - q)

and after the last that is, one from p. Leviathan et al. 2023, arXiv:2211.17192, algorithm 1 and appendix A.1: what is
written follows p, whatever q is. p is what the strategy would draw from, with all constraints; greedy is p = 1 for the
best token, so that the tokens are those of greedy decoding.

The rows of a batch take different numbers of tokens. Each forgets its own rejected ones; their slots wait in the cache
as padding, and every token's position is counted over what its own row has kept.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from gnomon.generate.decoding_batch import DecodingBatch
from gnomon.generate.logits import History, inverse_cdf
from gnomon.generate.row import Row, Token, Top
from gnomon.generate.rules import Rules, check_choice
from gnomon.generate.strategies import Distribution
from gnomon.shapes import Float


@dataclass(frozen=True)
class Draft:
    """Tokens that may follow a row, and the distributions (V,) that each was drawn from."""

    ids: list[int]
    q: list[Float]  #: probabilities, on the CPU


class Drafter(ABC):
    """Whoever drafts: a smaller model, or the text itself."""

    @abstractmethod
    def draft(self, rows: Sequence[Row], most: Sequence[int]) -> list[Draft]:
        """At most `most` tokens for each of the rows, which are those that still go on."""


def write_verified(
    batch: DecodingBatch, rows: list[Row], rules: Rules, drafter: Drafter, strategy: Distribution, length: int
) -> Iterator[Token]:
    """Continue all rows with the strategy, `length` drafted tokens at a time, in one forward of the model a step."""
    unread = [row.prompt_ids for row in rows]
    while True:
        fits = batch.fits(max(map(len, unread)) + length + 1)
        rooms = [n - len(ids) for n, ids in zip(fits, unread, strict=True)]  # drafted tokens that could be read
        left = [row.ends.max_new_tokens - len(row.ids) - 1 for row in rows]  # besides the one drawn at the end
        drafts = drafter.draft(rows, [max(0, min(length, *both)) for both in zip(rooms, left, strict=True)])
        h = batch.hidden([[*ids, *draft.ids] for ids, draft in zip(unread, drafts, strict=True)])
        seen = max(len(draft.ids) for draft in drafts) + 1
        logits = batch.logits(h[:, -seen:])  # (B, seen, V), each row's own at the end
        checks = _checks(logits, rows, drafts, rules, strategy)
        taken = []
        for row, check, room in zip(rows, checks, rooms, strict=True):
            before = len(row.ids)
            yield from check.accept(row, room)
            taken.append(len(row.ids) - before)
        going = [n for n, row in enumerate(rows) if row.finish_reason is None]
        if not going:
            return
        batch.forget([max(0, len(draft.ids) + 1 - n) for draft, n in zip(drafts, taken, strict=True)])
        batch.keep(going)
        rows, unread = [rows[n] for n in going], [rows[n].ids[-1:] for n in going]


@dataclass(frozen=True)
class Check:
    """What the model says about the n tokens of a draft, and about one more: of each place, 0 to n."""

    draft: Draft
    p: Float  #: (n + 1, V) probabilities with which the strategy draws; on the CPU
    logprobs: Float  #: (n + 1, V) the model's own; on the CPU
    top: Sequence[Top]
    allowed: Float  #: (n + 1, V) the logits that p came from
    histories: Sequence[History]

    def accept(self, row: Row, room: int) -> Iterator[Token]:
        """Write drafted tokens as long as they are accepted, and one more. `room` of the new tokens could be read."""
        for n, history in enumerate(self.histories):
            check_choice(self.allowed[n : n + 1], [history])
            token, accepted = _draw(self.p[n], self.draft, n, row.rng)
            yield row.take(token, float(self.logprobs[n, token]), n >= room, self.top[n])
            if not accepted or row.finish_reason is not None:
                return


def _checks(
    logits: Float, rows: Sequence[Row], drafts: Sequence[Draft], rules: Rules, strategy: Distribution
) -> Iterator[Check]:
    """Of each row, from logits (B, T, V) of which its own are the last; everything of the batch at once."""
    places = [len(draft.ids) + 1 for draft in drafts]
    histories = [
        row.history(draft.ids[:i]) for row, draft, n in zip(rows, drafts, places, strict=True) for i in range(n)
    ]
    view = rules.apply(torch.cat([own[-n:] for own, n in zip(logits, places, strict=True)]), histories)
    alive = view.allowed.amax(-1, keepdim=True).isfinite()  # a draft may lead where nothing is allowed
    p = strategy.process(view.allowed.where(alive, 0.0)).softmax(-1).cpu()
    logprobs, top, first = view.logprobs().cpu(), view.best(), 0
    for draft, n in zip(drafts, places, strict=True):
        here = slice(first, first + n)
        yield Check(draft, p[here], logprobs[here], top[here], view.allowed[here], histories[here])
        first += n


def _draw(p: Float, draft: Draft, n: int, rng: torch.Generator) -> tuple[int, bool]:
    """The token at place n, and whether it is the drafted one."""
    if n < len(draft.ids):
        token, q = draft.ids[n], draft.q[n]
        if float(torch.rand((), generator=rng, dtype=torch.float64)) * float(q[token]) < float(p[token]):
            return token, True
        rest = (p - q).clamp(min=0)
        p = rest if bool(rest.sum() > 0) else p  # equal but for rounding
    u = torch.rand(1, generator=rng, dtype=torch.float64)
    return int(inverse_cdf(p.log()[None], u)[0]), False


__all__ = ["Draft", "Drafter", "write_verified"]
