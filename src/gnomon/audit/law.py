"""What a law is: one sentence that must hold for a model, checked by one number.

A check compares what it got with what the law demands. Beside both it may lay what the fault it looks for would give,
put in by hand. Where that makes no difference (positions gone wrong in a model without positions), the model cannot
show the fault, and the verdict is "not observable", never "pass".
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

import torch

from gnomon.audit.subject import NotApplicable, Subject
from gnomon.errors import BadValue, must_be
from gnomon.shapes import Float

Verdict = Literal["fail", "pass", "not observable", "not applicable"]


@dataclass(frozen=True)
class Evidence:
    """What a check found: tensors of one shape.

    got    what the subject computed
    want   what the law demands
    fault  what a subject with the fault would have computed; None where the comparison itself cannot miss it
    slack  tolerated error, as a part of max(1, max|want|); 0 demands equal bits
    """

    got: Float
    want: Float
    fault: Float | None = None
    slack: float = 1e-5


@dataclass(frozen=True)
class Outcome:
    """The verdict of one law on one subject, with the largest error and what was tolerated."""

    law: str
    verdict: Verdict
    error: float = 0.0
    tolerance: float = 0.0
    note: str = ""


@dataclass(frozen=True)
class Law:
    """A law by name; call it on a Subject. `shown_by` names the encodings that make its fault visible."""

    name: str
    sentence: str
    check: Callable[[Subject], Evidence]
    shown_by: str

    def __call__(self, subject: Subject) -> Outcome:
        """Check the law on this subject. A subject that raises where it should answer fails."""
        how = 'gn.audit.Subject.of("rope"); a model of yours is asked by gn.audit(model)'
        must_be("subject", subject, Subject, how)
        try:
            with torch.no_grad():
                evidence = self.check(subject)
        except NotApplicable as why:
            return Outcome(self.name, "not applicable", note=str(why))
        except Exception as raised:  # whatever a model raises where it should answer
            return Outcome(self.name, "fail", inf, note=f"raised {type(raised).__name__}: {raised}")
        tolerance = evidence.slack * max(1.0, largest(evidence.want))
        error = difference(evidence.got, evidence.want)
        if not error <= tolerance:
            return Outcome(self.name, "fail", error, tolerance)
        if evidence.fault is not None and difference(evidence.fault, evidence.want) <= tolerance:
            note = f"the fault put in by hand changes nothing here; seen by: {self.shown_by}"
            return Outcome(self.name, "not observable", error, tolerance, note)
        return Outcome(self.name, "pass", error, tolerance)


def law(name: str, shown_by: str = "every encoding") -> Callable[[Callable[[Subject], Evidence]], Law]:
    """Turn a check into a Law; the first line of its docstring is the sentence."""

    def make(check: Callable[[Subject], Evidence]) -> Law:
        return Law(name, (check.__doc__ or name).strip().splitlines()[0], check, shown_by)

    return make


_ORDER: tuple[Verdict, ...] = ("fail", "pass", "not observable", "not applicable")


def judge(law: Law, subjects: Iterable[Subject]) -> Outcome:
    """One verdict over several subjects: the first failure, else a pass, else whether it could be seen at all."""
    must_be("law", law, Law, "one of gn.audit.LAWS.values()")
    must_be("subjects", subjects, Sequence | Iterator | set, "[gn.audit.Subject.of('rope')]")
    outcomes: list[Outcome] = []
    for subject in subjects:
        outcomes.append(law(subject))
        if outcomes[-1].verdict == "fail":
            break
    if not outcomes:
        raise BadValue("there is no subject to judge: give [gn.audit.Subject.of('rope')]")
    return min(outcomes, key=lambda outcome: _ORDER.index(outcome.verdict))


def difference(a: Float, b: Float) -> float:
    """The largest absolute difference; equal infinities differ by 0, a NaN or another shape by infinity."""
    if a.shape != b.shape:
        return inf
    a, b = a.detach().to(torch.float64), b.detach().to(torch.float64)
    return float(torch.where(a == b, 0.0, (a - b).abs()).nan_to_num(nan=inf, posinf=inf).amax()) if a.numel() else 0.0


def largest(x: Float) -> float:
    """The largest finite absolute value."""
    return float(x.detach().to(torch.float64).nan_to_num(0.0, 0.0, 0.0).abs().amax()) if x.numel() else 0.0


__all__ = ["Evidence", "Law", "Outcome", "Verdict", "difference", "judge", "largest", "law"]
