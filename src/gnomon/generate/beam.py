"""Beam search: several texts at once, of which the best `width` go on.

    score(y) = sum_t log p(y_t | y_<t, x) / |y|^length_penalty

With groups it is diverse beam search, Vijayakumar et al. 2016, arXiv:1610.02424, algorithm 1: the groups choose one
after another at each step, and a token costs a group `diversity` for each time that an earlier one chose it just now.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isfinite

import torch

from gnomon.errors import BadValue, check_arguments
from gnomon.generate.decoding_batch import DecodingBatch
from gnomon.generate.hypotheses import EarlyStopping, Group, Hypothesis, Outlook, Scoring, by_score
from gnomon.generate.row import Row, Token
from gnomon.generate.rules import Rules, View, no_token_error
from gnomon.generate.search import Search
from gnomon.generate.tree import Record


@check_arguments
@dataclass(frozen=True)
class Beam(Search):
    """The `n_best` best of `width` texts that are written side by side; width 1 is greedy.

    length_penalty   what the length of a text weighs: above 0 longer texts gain, below 0 shorter ones do
    early_stopping   when a row ends, by one of three rules:
                     False    `width` of its texts have ended, and none that goes on is worth more, at the length it has
                              now, than the last of the best `width` of them
                     True     as soon as `width` have ended, however much better a text that goes on may be
                     "never"  `n_best` have ended, and no text that goes on can still come among them: exact, and may
                              take as long as max_new_tokens
    n_best           results of each row: the best one is the Generation, the others are its alternatives

    Texts that reach max_new_tokens, or the end of a table, are results only where too few ended by themselves.

    The rules are those of transformers' beams. What counts as a text that has ended is not: here it is any that is
    worth more than the last of the `width` that go on; there, only one among the best `width` of all that may follow,
    so that True ends later there. And there, a text that was cut off is a result like any other.
    """

    width: int = 4
    length_penalty: float = 1.0
    early_stopping: EarlyStopping = False
    n_best: int = 1

    def __post_init__(self) -> None:
        """Raise BadValue for a setting that cannot be right."""
        _check(self.width, self.length_penalty, self.early_stopping, self.n_best)

    def write(self, batch: DecodingBatch, rows: list[Row], rules: Rules) -> Iterator[Token]:
        """One forward a step for all texts of all rows."""
        return Writing(self, 1, 0.0).write(batch, rows, rules)


@check_arguments
@dataclass(frozen=True)
class DiverseBeam(Search):
    """Beam search in groups that keep away from one another; the rest is as in Beam.

    width       of all groups together; groups: how many there are, of equal widths
    diversity   what a token costs, as a log-probability, for each time another group chose it at the same step. It
                decides what is looked into and is no part of a score
    """

    width: int = 4
    groups: int = 2
    diversity: float = 0.5
    length_penalty: float = 1.0
    early_stopping: EarlyStopping = False
    n_best: int = 1

    def __post_init__(self) -> None:
        """Raise BadValue for a setting that cannot be right."""
        _check(self.width, self.length_penalty, self.early_stopping, self.n_best)
        if self.groups < 1 or self.width % self.groups:
            raise BadValue(f"width={self.width} does not divide into groups={self.groups}: choose a multiple")
        if not (isfinite(self.diversity) and self.diversity >= 0):
            raise BadValue(f"diversity is a cost, at least 0; got {self.diversity}")

    def write(self, batch: DecodingBatch, rows: list[Row], rules: Rules) -> Iterator[Token]:
        """One forward a step for all texts of all groups of all rows."""
        plain = Beam(self.width, self.length_penalty, self.early_stopping, self.n_best)
        return Writing(plain, self.groups, self.diversity).write(batch, rows, rules)


class RowSearch:
    """One row and the groups that write it."""

    def __init__(self, row: Row, place: int, beam: Beam, groups: int) -> None:
        scoring = Scoring(beam.length_penalty, row.ends.min_new_tokens, row.ends.max_new_tokens)
        width = beam.width // groups
        enough = min(beam.n_best, width)
        self.row, self.record = row, Record()
        self.groups = [Group(row, place, width, enough, scoring, beam.early_stopping) for _ in range(groups)]

    @property
    def live(self) -> list[Hypothesis]:
        """The texts that go on."""
        return [h for group in self.groups for h in group.live]

    def certain(self) -> Iterator[Token]:
        """Hand over the tokens on which all that may still win agree."""
        texts = [h for group in self.groups for h in group.may_win()]
        for i in range(len(self.row.ids), _common_length([h.row.ids for h in texts])):
            yield _hand_out(self.row, texts[0], i)

    def finish(self, n_best: int) -> Iterator[Token]:
        """Hand over the rest of the best text; the others become its alternatives."""
        best = self._results(n_best)
        if not best:
            raise no_token_error(self.row.history())
        tree = self.record.tree([h.node for h in best])
        others = []
        for h in best[1:]:
            h.row.score = h.score
            others.append(h.row.generation())
        self.row.score, self.row.alternatives, self.row.tree = best[0].score, tuple(others), tree
        for i in range(len(self.row.ids), len(best[0].row.ids)):
            yield _hand_out(self.row, best[0], i)

    def _results(self, n_best: int) -> list[Hypothesis]:
        """The n_best best, best first; texts that were cut off fill up where too few ended by themselves."""
        finished = _distinct([h for group in self.groups for h in group.finished])[:n_best]
        cut = _distinct([h for group in self.groups for h in group.cut])
        return sorted([*finished, *cut[: n_best - len(finished)]], key=by_score)


@dataclass(frozen=True)
class Writing:
    """A beam at work; `groups` and `diversity` as in DiverseBeam."""

    beam: Beam
    groups: int
    diversity: float

    def write(self, batch: DecodingBatch, rows: list[Row], rules: Rules) -> Iterator[Token]:
        """Read, let every group choose, go on with what it chose."""
        searches = [RowSearch(row, n, self.beam, self.groups) for n, row in enumerate(rows)]
        logits = batch.read([row.prompt_ids for row in rows])
        if self.groups > 1:
            batch.keep([n for n in range(len(rows)) for _ in range(self.groups)])
            logits = logits.repeat_interleave(self.groups, 0)
        while True:
            texts = [h for search in searches for h in search.live]
            view = rules.apply(logits, [h.row.history() for h in texts])
            self._step(searches, view, batch.full())
            for search in searches:
                yield from search.certain() if search.live else search.finish(self.beam.n_best)
            searches = [search for search in searches if search.live]
            if not searches:
                return
            batch.keep([h.place for search in searches for h in search.live])
            logits = batch.read([h.row.ids[-1:] for search in searches for h in search.live])

    def _step(self, searches: list[RowSearch], view: View, full: list[bool]) -> None:
        """Every group of every row goes one token further; texts are numbered as the batch holds them."""
        scores, logprobs, top = view.scores().cpu(), view.logprobs().cpu(), view.best()
        first = 0
        for search in searches:
            chosen = torch.zeros(scores.shape[1])  # how often earlier groups chose each token at this step
            for group in search.groups:
                here = slice(first, first + len(group.live))
                if group.live:
                    group.live = [replace(h, place=n) for n, h in enumerate(group.live, first)]
                    first = here.stop
                    ranks = scores[here] - self.diversity * chosen
                    look = Outlook(scores[here], ranks, logprobs[here], full[here], top[here])
                    for token in group.step(look, search.record):
                        chosen[token] += 1


def _distinct(texts: list[Hypothesis]) -> list[Hypothesis]:
    """Each text once, the best first: two groups may have written the same."""
    once: dict[tuple[int, ...], Hypothesis] = {}
    for h in sorted(texts, key=by_score):
        once.setdefault(tuple(h.row.ids), h)
    return list(once.values())


def _common_length(texts: list[list[int]]) -> int:
    """The number of tokens with which all of the texts begin."""
    differ = (i for i, column in enumerate(zip(*texts, strict=False)) if len(set(column)) > 1)
    return next(differ, min(map(len, texts)))


def _hand_out(row: Row, text: Hypothesis, i: int) -> Token:
    """Write token i of a text into the row that is handed out."""
    full = text.row.finish_reason == "positions" and i + 1 == len(text.row.ids)
    return row.take(text.row.ids[i], text.row.logprobs[i], full, text.row.tops[i])


def _check(width: int, length_penalty: float, early_stopping: EarlyStopping, n_best: int) -> None:
    if width < 1:
        raise BadValue(f"a beam is at least 1 wide, got width={width}")
    if not isfinite(length_penalty):
        raise BadValue(f"length_penalty is a finite number (0: length does not count), got {length_penalty}")
    if not isinstance(early_stopping, bool) and early_stopping != "never":
        raise BadValue(f'early_stopping is True, False or "never", got {early_stopping!r}: Beam says what each means')
    if not 1 <= n_best <= width:
        raise BadValue(f"n_best counts results, from 1 to the width {width}; got {n_best}: use a wider beam")


__all__ = ["Beam", "DiverseBeam"]
