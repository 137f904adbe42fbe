"""What a law is, and how it comes to a verdict.

A check compares what it got with what the law demands. Beside both it may lay what the fault it looks for would give,
put in by hand. Where that makes no difference (positions gone wrong in a model without positions), the model cannot
show the fault, and the verdict is "not observable", never "pass". A failure is looked for again in shorter and shorter
inputs, and the smallest is shown.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import torch

from gnomon.audit.answers import REFUSES, error_text, one_line, refusal
from gnomon.audit.compare import difference
from gnomon.audit.finding import SHORT, UNASKED, Finding
from gnomon.audit.target import Ability, NotApplicable, Target
from gnomon.errors import must_be
from gnomon.glossary import message as in_words
from gnomon.shapes import Float, Int

LENGTH = 12  #: tokens of the inputs that laws are checked on
ROOM = 4  #: tokens that laws may add to such an input; a table of positions must hold them
SHORTEST = 8  #: positions that every law finds room in
LONGER = (12, 16, 24)  #: lengths that are tried where a text could not be asked, as are those of the ladder
LADDER = (1, 2, 3, 4, 5, 6, 8, 10)  #: lengths in which a failure is looked for again
Need = Ability | type[Target]  #: what a target must be able to do, or the class of targets that a law is about
Check = Callable[[Any, int], "Evidence"]  #: of a target and a number of tokens


@dataclass(frozen=True)
class Evidence:
    """What a check found: tensors of one shape, (B, T, V) where it is about logits.

    got        what the target computed
    want       what the law demands
    fault      what a target with the fault would have computed; None where the comparison itself cannot miss it
    input      the ids (B, T) that show it
    tolerance  tolerated error; None: what the target's dtype, depth and logits allow
    cause      what the numbers say about the reason, where they say more than the law's hint; a function is called
               where the law fails, and tests a cause before it names it
    """

    got: Float
    want: Float
    fault: Float | None = None
    input: Int | None = None
    tolerance: float | None = None
    cause: str | Callable[[], str] = ""

    def why(self) -> str:
        """The cause; "" where the question for it makes the model raise."""
        if isinstance(self.cause, str):
            return self.cause
        with suppress(Exception), torch.random.fork_rng(devices=[]), torch.no_grad():
            return self.cause()
        return ""

    def weigh(self, target: Target) -> tuple[float, float]:
        """The largest error, and what is tolerated of this target."""
        tolerance = target.tolerance(self.want) if self.tolerance is None else self.tolerance
        return difference(self.got, self.want), tolerance

    def holds(self, target: Target) -> bool:
        """Whether the error is tolerated."""
        error, tolerance = self.weigh(target)
        return error <= tolerance


@dataclass(frozen=True)
class Law:
    """A law by name; call it on a Target. `law` makes one, and explains the fields."""

    name: str
    sentence: str
    check: Check
    source: str
    hint: str
    shown_by: str
    needs: tuple[Need, ...] = ()
    shrinks: bool = True
    basic: bool = False

    @property
    def kinds(self) -> tuple[type[Target], ...]:
        """Classes of the targets that it is about; none where it is about every model."""
        return tuple(need for need in self.needs if isinstance(need, type))

    @property
    def about_parts(self) -> bool:
        """Whether it is about parts of models, which give no logits that could be unfit."""
        return bool(self.kinds) and Target not in self.kinds

    def concerns(self, target: Target) -> bool:
        """Whether it speaks of such a target at all."""
        return isinstance(target, self.kinds) if self.kinds else not target.bare

    def __call__(self, target: Target, length: int = LENGTH) -> Finding:
        """Check the law on this target with inputs of `length` tokens."""
        must_be("target", target, Target, "gn.audit.target(model), or gn.audit(model), which asks every law")
        if target.table_ends and target.limit is not None:
            length = max(1, min(length, target.limit - ROOM))
        length = target.nearest(length)
        found = self._judge(target, length)
        if found.verdict == "not observable" and target.can_redraw and not self.about_parts:
            found = self._judge_larger(target, length) or found
        because = target.by_design.get(self.name)
        if because is None or found.verdict != "FAIL":
            return found
        return replace(found, verdict="by design", note=because.reason, link=because.link)

    def _judge_larger(self, target: Target, length: int) -> Finding | None:
        """The verdict with weights drawn larger, if they show anything."""
        try:
            with target.redraw() as larger:
                again = self._judge(larger, length)
        except Exception:  # whatever weights raise that do not let themselves be drawn
            return None
        note = f"{again.note} (seen once its weights are drawn larger)" if again.note else ""
        return replace(again, note=note) if again.verdict in ("pass", "FAIL") else None

    def _judge(self, target: Target, length: int) -> Finding:
        """The verdict with these weights, a failure in the shortest input that shows it."""
        found = self._judge_at(target, length)
        if found.note.startswith(UNASKED):
            found, length = self._retry_lengths(target, length, found)
        if found.verdict != "FAIL" or self.about_parts:
            return found
        if note := self._why_unfit(target, length, found):
            return self._not_applicable(note)
        if self._is_rounding(target, found):
            note = "the weights are so large that roundings alone do this"
            return replace(found, verdict="not observable", note=note)
        return self._shrink(target, length, found) if self.shrinks else found

    def _retry_lengths(self, target: Target, length: int, found: Finding) -> tuple[Finding, int]:
        """The first verdict on a text of another length, where one of this length could not be asked, and its length:
        laws add tokens and take some away, and some models answer certain lengths alone."""
        for n in (*reversed([n for n in LADDER if 1 < n < length]), *(n for n in LONGER if n != length)):
            again = self._judge_at(target, n)
            if again.verdict != "not applicable":
                return again, n
        return found, length

    def _judge_at(self, target: Target, length: int) -> Finding:
        try:
            with torch.random.fork_rng(devices=[]), torch.no_grad(), target.undo_afterwards():
                torch.manual_seed(target.seed + 0x617564)  # not the one that the model may have been drawn with
                e = self._evidence(target, length)
        except (NotApplicable, NotImplementedError) as why:
            note = str(why) if isinstance(why, NotApplicable) else f"{target.name} refuses: {one_line(str(why))}"
            return self._not_applicable(note)
        except (MemoryError, torch.cuda.OutOfMemoryError) as why:
            note = f"out of memory: {one_line(str(why))}"
            return self._not_applicable(note)
        except Exception as raised:  # a crash is no number: it shows that the question was not answered, and no more
            if target.table_ends and target.limit is not None and target.limit < SHORTEST:
                note = f"{target.name} reads {target.limit} tokens, and {SHORT} {SHORTEST}"
                return self._not_applicable(note)
            return self._not_applicable(self._why_unfit(target, length) or f"{UNASKED}: {error_text(raised)}")
        return self._verdict(target, e)

    def _evidence(self, target: Target, length: int) -> Evidence:
        if not self.concerns(target):
            meant = " or a ".join(kind.what for kind in self.kinds) or Target.what
            raise NotApplicable(f"{target.name} is a {target.what}, not a {meant}")
        target.need(*(need for need in self.needs if not isinstance(need, type)))
        return self.check(target, length)

    def _verdict(self, target: Target, e: Evidence) -> Finding:
        """The verdict on what a check found."""
        error, tolerance = e.weigh(target)
        measured = Finding(self.name, self.sentence, "pass", error, tolerance, source=self.source)
        if not error <= tolerance:
            where, smallest = _where(e), "" if e.input is None else f"ids {e.input.tolist()}"
            return replace(measured, verdict="FAIL", where=where, smallest=smallest, note=e.why() or self.hint)
        if e.fault is not None and difference(e.fault, e.want) <= tolerance:
            seen = f"the fault put in by hand changes nothing here; seen by: {self.shown_by}"
            return replace(measured, verdict="not observable", note=seen)
        return measured

    def _shrink(self, target: Target, length: int, found: Finding) -> Finding:
        """The same failure in the shortest input that shows it. A cause that only a longer one shows is kept."""
        for n in (n for n in LADDER if n < length):
            shorter = self._judge_at(target, n)
            if shorter.verdict == "FAIL":
                note = found.note if shorter.note == self.hint else shorter.note
                return replace(shorter, note=note)
        return found

    def _why_unfit(self, target: Target, length: int, found: Finding | None = None) -> str:
        """Why this failure, or a crash, says nothing: plain ids get no finite logits, or others each time; "" if it
        does."""
        if self.basic:
            return ""
        if broken := target.broken_weight():
            return f"{broken} is not finite: see whether logits are numbers"
        length = target.nearest(length)
        try:
            if refusal(target, 2, length):
                return f"{target.name} does not answer plain ids: see whether logits are numbers"
            with torch.random.fork_rng(devices=[]), torch.no_grad():
                ids = target.ids(2, length)
                want, again = target.logits(ids), target.logits(ids)
        except REFUSES:
            return ""
        if not bool(want.isfinite().all()):
            return f"logits of {target.name} are not finite: see whether logits are numbers"
        moved = (
            found is not None and found.tolerance != 0.0 and bool(((again - want).abs() > target.tolerance(want)).any())
        )
        return f"two like calls of {target.name} differ: see whether evaluation is deterministic" if moved else ""

    def _is_rounding(self, target: Target, found: Finding) -> bool:
        """Whether the failure is no larger than what roundings do to this model."""
        near = found.tolerance > 0.0 and found.error < 1000 * found.tolerance
        with torch.no_grad():
            return near and found.error <= 16 * target.noise()

    def _not_applicable(self, why: str) -> Finding:
        """That the law does not apply."""
        return Finding(self.name, self.sentence, "not applicable", note=why, source=self.source)


def law(
    name: str,
    *needs: Need,
    source: str = "",
    hint: str = "",
    shown_by: str = "every encoding",
    shrinks: bool = True,
    basic: bool = False,
) -> Callable[[Check], Law]:
    """Turn a check into a Law; the first line of its docstring is the sentence.

    needs     abilities (see Target) without which it does not apply, and classes of targets that it is about, any of
              them; without a class it is about every model
    source    the paper or the fault behind the law
    hint      where to look when it fails
    shown_by  the encodings that make its fault visible
    shrinks   False where the length of the input is not what the check is about
    basic     True for the law that plain ids get finite logits, without which the others say nothing
    """

    def make(check: Check) -> Law:
        sentence = (check.__doc__ or name).strip().splitlines()[0]
        return Law(name, sentence, check, source, hint, shown_by, needs, shrinks, basic)

    return make


def _where(e: Evidence) -> str:
    """Of the largest error, in words."""
    if e.got.shape != e.want.shape:
        return in_words("audit", "shape", got=tuple(e.got.shape), want=tuple(e.want.shape))
    got, want = e.got.detach().double(), e.want.detach().double()
    apart = torch.where(got == want, 0.0, (got - want).abs()).nan_to_num(nan=inf, posinf=inf)
    place = [int(i) for i in torch.unravel_index(apart.argmax(), apart.shape)]
    if len(place) == 3:
        row, token, entry = map(str, place)
        return in_words("audit", "place", row=row, token=token, tokens=str(e.got.shape[1]), entry=entry)
    return in_words("audit", "entry", entry=str(place)) if place else ""


__all__ = ["LADDER", "LENGTH", "Check", "Evidence", "Law", "Need", "law"]
