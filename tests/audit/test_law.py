"""How a law comes to a verdict: what is a failure, what cannot be seen, what does not apply, what is shown of it."""

from math import inf
from pathlib import Path

import pytest
import torch
from tiny import Tiny, target

import gnomon as gn
from gnomon.audit import Because, NotApplicable
from gnomon.audit.law import Evidence, Law
from gnomon.audit.law import law as make_law


def law(check, shrinks=True) -> Law:
    return make_law("a law", source="a paper", hint="look there", shown_by="rope", shrinks=shrinks)(check)


def off_by(error, fault=1.0, **more):
    """A law whose target is off by so much at its last entry, where the fault by hand is off by `fault`."""

    def check(t, n):
        """A sentence."""
        want = torch.ones(1, n, 3)
        got, faulty = want.clone(), want + fault
        got[0, -1, -1] += error
        return Evidence(got, want, faulty, torch.arange(n)[None], **more)

    return law(check)


SHOWN = Path(__file__).relative_to(Path.cwd()) if Path(__file__).is_relative_to(Path.cwd()) else Path(__file__).name
TOLERANCE = target(Tiny()).tolerance(torch.ones(1))


@pytest.mark.parametrize(
    ("error", "fault", "verdict"),
    [
        (0.0, 1.0, "pass"),
        (0.5 * TOLERANCE, 1.0, "pass"),
        (0.5 * TOLERANCE, 0.5 * TOLERANCE, "not observable"),
        (0.01, 1.0, "FAIL"),
        (0.01, 0.0, "FAIL"),
        (float("nan"), 1.0, "FAIL"),
        (inf, 1.0, "FAIL"),
    ],
)
def test_an_error_beyond_the_tolerance_fails_and_a_fault_within_it_cannot_be_seen(error, fault, verdict):
    t = target(Tiny(), can=frozenset())  # nothing is drawn anew
    assert off_by(error, fault)(t).verdict == verdict


def test_a_failure_is_shown_in_the_shortest_input_that_has_it():
    found = law(lambda t, n: Evidence(torch.full((1, n, 2), float(n >= 5)), torch.zeros(1, n, 2), None, t.ids(1, n)))(
        target(Tiny())
    )
    assert found.verdict == "FAIL"
    assert found.smallest == f"ids {target(Tiny()).ids(1, 5).tolist()}"
    assert found.where == "row 0, token 0 of 5, entry 0"


def test_a_cause_that_only_long_inputs_show_survives_shrinking():
    def check(t, n):
        """A sentence."""
        return Evidence(torch.ones(1, n, 2), torch.zeros(1, n, 2), None, t.ids(1, n), cause="because" if n > 8 else "")

    found = law(check)(target(Tiny()))
    assert (found.note, len(eval(found.smallest[4:])[0])) == ("because", 1)


def test_an_input_too_short_for_the_law_is_not_shown_instead_of_the_failure():
    def check(t, n):
        """A sentence."""
        if n < 4:
            raise IndexError("too short for this")
        return Evidence(torch.ones(1, n, 2), torch.zeros(1, n, 2), None, t.ids(1, n))

    found = law(check)(target(Tiny()))
    assert found.error == 1.0
    assert "token 0 of 4" in found.where


@pytest.mark.parametrize(
    ("raised", "words"),
    [
        (NotApplicable("has no cache"), "has no cache"),
        (NotImplementedError("prefix without cache"), "Tiny refuses: prefix without cache"),
        (MemoryError("1 TB"), "out of memory: 1 TB"),
        (IndexError("index out of range"), "could not be asked: IndexError: index out of range, at {line}"),
        (RuntimeError("sizes  do\nnot match"), "could not be asked: RuntimeError: sizes do not match, at {line}"),
    ],
)
def test_a_refusal_does_not_apply_and_a_crash_is_no_evidence(raised, words):
    def check(t, n):
        """A sentence."""
        raise raised

    found = law(check)(target(Tiny()))
    line = f"{SHOWN}:{check.__code__.co_firstlineno + 2}"  # where it raises
    assert (found.verdict, found.note, found.error) == ("not applicable", words.format(line=line), 0.0)


class BestEight(Tiny):
    """Attention to the eight best keys, of which there must be eight."""

    def attend(self, block, x, positions, seen, past):
        seen.float().topk(8)
        return super().attend(block, x, positions, seen, past)


def test_what_a_model_raises_at_few_tokens_is_held_against_no_law():
    report = gn.audit(target(BestEight(), can=frozenset({"module", "positions", "cache"})))
    assert report.failed == ()
    assert report["a tie stays a tie"].note == "the ends of BestEight are not tied"
    assert report["past the table is an error"].note.startswith("could not be asked: RuntimeError")
    assert report["cached = full"].note.startswith("could not be asked: RuntimeError")
    assert report["causality"].verdict == "pass"


def test_what_is_meant_so_is_by_design_with_the_link_and_the_measured_error():
    because = {"a law": Because("its page says so", "https://example.org")}
    found = off_by(0.01)(target(Tiny(), by_design=because))
    assert (found.verdict, found.note, found.link) == ("by design", "its page says so", "https://example.org")
    assert found.error > found.tolerance
    assert off_by(0.0)(target(Tiny(), by_design=because)).verdict == "pass"


@pytest.mark.slow
def test_roundings_of_a_steep_model_are_no_failure_and_a_fault_in_it_is():
    steep = target(Tiny(layers=6, std=1.0), can=frozenset())  # nothing is drawn anew
    noise = steep.noise()
    assert noise > 100 * target(Tiny(layers=6, std=0.02)).noise()
    assert off_by(8 * noise, tolerance=noise)(steep).verdict == "not observable"
    assert off_by(50 * noise, tolerance=noise)(steep).verdict == "FAIL"


def test_what_fresh_weights_cannot_show_is_asked_again_of_larger_ones():
    def check(t, n):
        """A sentence."""
        seen = float(not t.own_weights)
        return Evidence(torch.full((1, n, 2), seen), torch.zeros(1, n, 2), torch.full((1, n, 2), seen), t.ids(1, n))

    found = law(check)(target(Tiny()))
    assert (found.verdict, found.note) == ("FAIL", "look there (seen once its weights are drawn larger)")
    assert law(check)(target(Tiny(), can=frozenset())).verdict == "not observable"


def drawn(model):
    """Its weights while they are drawn anew, by name."""
    with target(model).redraw() as larger:
        return {name: weight.clone() for name, weight in larger.module.state_dict().items()}


@pytest.mark.slow
def test_larger_weights_are_lent_and_the_same_every_time():
    model = Tiny(std=0.02)
    before = model.head.weight.clone()
    once, again = drawn(model), drawn(model)
    assert torch.equal(model.head.weight, before)
    assert all(torch.equal(once[name], again[name]) for name in once)
    assert 0.2 < float(once["head.weight"].std()) < 0.3  # 1 / sqrt(16)


def test_a_fixed_table_is_not_drawn_anew():
    model = Tiny("table")
    model.table.weight.requires_grad_(False)
    redrawn = drawn(model)
    assert torch.equal(redrawn["table.weight"], model.table.weight)
    assert not torch.equal(redrawn["head.weight"], model.head.weight)


def test_inputs_fit_into_a_short_table():
    lengths = []

    def check(t, n):
        """A sentence."""
        lengths.append(n)
        return Evidence(torch.zeros(1), torch.zeros(1))

    for limit in (64, 10, 3):
        law(check)(target(Tiny("table", limit=limit)))
    assert lengths == [12, 6, 1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("std", [0.02, 0.3])
def test_the_tolerance_is_above_what_healthy_models_need_and_far_below_logits(dtype, std):
    t = target(Tiny("rope", layers=4, std=std).to(dtype))
    ids = t.ids(3, 16)
    with torch.no_grad():
        want = t.logits(ids)
        errors = [torch.cat([t.logits(row[None]) for row in ids]) - want, t.logits(ids[:, :5]) - want[:, :5]]
    needed = max(float(error.abs().amax()) for error in errors)
    assert 2 * needed <= t.tolerance(want) <= 0.1 * float(want.abs().amax())
