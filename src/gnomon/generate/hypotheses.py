"""Hypotheses: the texts that a beam holds of one prompt, and which of them go on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch

from gnomon.generate.logits import top_k
from gnomon.generate.row import Row, Top
from gnomon.generate.tree import Node, Record
from gnomon.shapes import Float

EarlyStopping = bool | Literal["never"]  #: the three rules by which a search ends, see Beam.early_stopping


@dataclass(frozen=True)
class Scoring:
    """What a text is worth: the sum of its log-probabilities / (number of new tokens)^length_penalty.

    Wu et al. 2016, arXiv:1609.08144, equation 14, in its simplest form. The prompt counts nothing, neither in the sum
    nor in the length.
    """

    length_penalty: float
    least: int  #: a text ends with this many new tokens at the earliest,
    most: int  #: and with this many at the latest

    def score(self, logp: float, length: int) -> float:
        """Of a text of `length` new tokens."""
        return float(logp / length**self.length_penalty)

    def bound(self, logp: float, length: int) -> float:
        """The best score that a text of `length` tokens can still reach, if every other token is certain. A sum below
        0 is worth most over the longest length there can be, or the shortest where the penalty is below 0."""
        reach = self.most if self.length_penalty > 0 else max(length + 1, self.least)
        return self.score(logp, min(reach, self.most))


@dataclass(frozen=True)
class Hypothesis:
    """One text: what it holds, what it is worth, and where it is found."""

    row: Row
    logp: float  #: the sum of its log-probabilities
    score: float
    place: int  #: its row in the batch, or that of the text it came from
    node: int  #: its last token in the tree

    @property
    def finished(self) -> bool:
        """Whether it ended by itself, rather than being cut off."""
        return self.row.finish_reason in ("eos", "stop")


@dataclass(frozen=True)
class Outlook:
    """What may follow each of a few hypotheses, on the CPU."""

    scores: Float  #: (N, V) log-probability of each token; -inf: not allowed
    ranks: Float  #: (N, V) by which they are ranked: the same, less what other groups chose already
    logprobs: Float  #: (N, V) to be reported
    full: Sequence[bool]  #: of each whether the model could not read one more token
    top: Sequence[Top]


class Group:
    """`width` hypotheses of one prompt that compete with one another."""

    def __init__(self, row: Row, place: int, width: int, enough: int, scoring: Scoring, early: EarlyStopping) -> None:
        """enough: how many results are wanted of it; early: see Beam.early_stopping."""
        self.live = [Hypothesis(row.branch(), 0.0, 0.0, place, -1)]
        self.finished: list[Hypothesis] = []  # by themselves
        self.cut: list[Hypothesis] = []  # by a length or a table
        self.width, self.enough, self.scoring, self.early = width, enough, scoring, early

    def step(self, look: Outlook, record: Record) -> list[int]:
        """Go on with the best `width` of all that may follow without an end; what ends and is worth more than the last
        of them is kept aside, so that the beam keeps its width. Returns the tokens that were chosen."""
        listed = self.width + 2  # of each parent; more only if so many texts end that these do not suffice
        while True:
            going, ended, all_seen = self._pick(look, min(listed, look.scores.shape[1]))
            if all_seen:
                break
            listed *= 4
        for h in (_record_token(h, record) for h in ended):
            (self.finished if h.finished else self.cut).append(h)
        self.live = [] if self._over(going) else [_record_token(h, record) for h in going]
        return [h.row.ids[-1] for h in (*ended, *self.live)]

    def may_win(self) -> list[Hypothesis]:
        """All texts one of which the best result is, or will begin with."""
        return [*self.live, *sorted(self.finished, key=by_score)[:1], *self.cut]

    def _pick(self, look: Outlook, listed: int) -> tuple[list[Hypothesis], list[Hypothesis], bool]:
        """Those that go on and those that end; and whether `listed` candidates of each parent were enough to know."""
        going: list[Hypothesis] = []
        ended: list[Hypothesis] = []
        used = [0] * len(self.live)
        for n, token in _candidates(look, [h.logp for h in self.live], listed):
            h = self._child(self.live[n], look, n, token)
            (going if h.row.finish_reason is None else ended).append(h)
            used[n] += 1
            if len(going) + sum(not h.finished for h in ended) == self.width:
                return going, ended, True
            if used[n] == listed < look.scores.shape[1]:
                return going, ended, False  # the next best may be one that is not listed
        return going, ended, True

    def _child(self, parent: Hypothesis, look: Outlook, n: int, token: int) -> Hypothesis:
        row = parent.row.branch()
        row.take(token, float(look.logprobs[n, token]), look.full[n], look.top[n])
        logp = parent.logp + float(look.scores[n, token])
        return Hypothesis(row, logp, self.scoring.score(logp, len(row.ids)), parent.place, parent.node)

    def _over(self, going: Sequence[Hypothesis]) -> bool:
        """Whether nothing that goes on is to change the results any more."""
        wanted = self.enough if self.early == "never" else self.width
        if len(self.finished) < wanted or self.early is True:
            return len(self.finished) >= wanted
        least = sorted(self.finished, key=by_score)[wanted - 1].score
        return all(self._hope(h) <= least for h in going)

    def _hope(self, h: Hypothesis) -> float:
        """What a text that goes on is reckoned to be worth in the end."""
        return self.scoring.bound(h.logp, len(h.row.ids)) if self.early == "never" else h.score


def _candidates(look: Outlook, sums: Sequence[float], listed: int) -> Iterator[tuple[int, int]]:
    """(parent, token) from the best on, as far as the best `listed` tokens of each parent go; ties go to the earlier
    parent and the lower id."""
    best = top_k(look.ranks, listed).topk(listed)  # top_k gives ties at the edge to the lower id
    found = [
        (-(sums[n] + rank), n, token)
        for n in range(len(sums))
        for rank, token in zip(best.values[n].tolist(), best.indices[n].tolist(), strict=True)
        if rank > -torch.inf
    ]
    yield from ((n, token) for _, n, token in sorted(found))


def _record_token(h: Hypothesis, record: Record) -> Hypothesis:
    """The same with its last token in the record."""
    row = h.row
    return replace(h, node=record.add(Node(h.node, row.ids[-1], row.logprobs[-1], h.score, row.finish_reason)))


def by_score(h: Hypothesis) -> float:
    """To sort by: the best comes first."""
    return -h.score


__all__ = ["EarlyStopping", "Group", "Hypothesis", "Outlook", "Scoring", "by_score"]
