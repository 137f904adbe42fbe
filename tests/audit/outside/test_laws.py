"""Each law about the behaviour of anybody's model fails on a fault planted for it, says why where it can, and passes
healthy models of every kind."""

import planted
import pytest
import torch
from tiny import Tiny, TinyTarget, target

import gnomon as gn
from gnomon.audit import RULES
from gnomon.audit.outside.consequences import AFTER
from gnomon.audit.outside.laws import caches, history, limits, order, padding, precision, sources, windows
from gnomon.audit.outside.rule import Rule

ROOMS = (history, order, caches, padding, windows, limits, precision, sources)
LAWS = {found.name: found for room in ROOMS for found in vars(room).values() if isinstance(found, Rule)}


class StaysInPlace(TinyTarget):
    """Its cache is not reordered, but has as many rows as are asked for."""

    def reorder(self, state, index):
        return [tuple(x[torch.arange(len(index)) % len(x)] for x in layer) for layer in state]


class FirstReadWrong(TinyTarget):
    """Only the first read of a prompt is wrong: steps after it, and from nothing, are right."""

    def step(self, state, ids, mask=None, positions=None):
        self.model.norm.eps = 0.5 if state is None and ids.shape[1] > 1 else 1e-5
        for block in self.model.blocks:
            block.norm.eps = self.model.norm.eps
        try:
            return super().step(state, ids, mask, positions)
        finally:
            for norm in (self.model.norm, *(block.norm for block in self.model.blocks)):
                norm.eps = 1e-5


class KeepsInside(TinyTarget):
    """It keeps its cache inside, and a plain read throws it away."""

    held = None

    def logits(self, *args, **more):
        self.held = None
        return super().logits(*args, **more)

    def step(self, state, *args, **more):
        logits, self.held = super().step(self.held if state else None, *args, **more)
        return logits, True


PAD = "padding changes nothing"
PLACED = "padding with positions changes nothing"
PLANTED = [
    ("logits are numbers", planted.DividesByZero(), "a division by zero"),
    ("logits are numbers", planted.NotItselfButNaN(), "may not see even itself"),
    ("logits are numbers", planted.NotItselfButNaN(layers=1), "may not see even itself"),
    ("logits are numbers", planted.LastSeesNothing(), "[11] get NaN"),
    ("evaluation is deterministic", planted.DropsForEver(), ""),
    ("call history", planted.KeepsAngles(), "after one of 64 tokens under bfloat16 autocast"),
    ("call history", planted.KeepsInferred(), "of 64 tokens in inference mode no gradient can be taken"),
    ("call history", planted.KeepsTheLongest(), "tokens differ from those before it"),
    ("causality", planted.WrongWayRound(), "the wrong way round"),
    ("causality", planted.WrongWayRound(layers=1), "the wrong way round"),
    ("causality", planted.SeesTheNext(), "sees the next one"),
    ("causality", planted.SeesTheNext(layers=1), "sees the next one"),
    ("causality", planted.NoMask(), "no mask hides those to come"),
    ("causality", planted.NotItself(), "only the first token looks ahead"),
    ("causality", planted.HalfHidden(), ""),
    ("the past is seen", planted.SeesItselfAlone(), ""),
    ("the past is seen", planted.WrongWayRound(), ""),
    ("prefix = beginning", planted.PlacesFromTheLength("sinusoid"), ""),
    ("prefix = beginning past the limit", planted.DynamicNTK(), ""),
    ("prefix = beginning past the limit", planted.DynamicNTK(limit=500), ""),
    ("order is seen", planted.BagOfWords(causal=False), ""),
    ("order is seen", planted.BagOfWords(layers=1), ""),
    ("every row has its own positions", planted.RowZero(), ""),
    ("shift", planted.AddsATable(), ""),
    ("cached = full", planted.StepsAtZero(), "stands at position 0"),
    ("cached = full", planted.StepsAtZero("table"), "stands at position 0"),
    ("cached = full", planted.StepsDrift(), "drift in one of 64"),
    ("cached = full", planted.StepsTooEarly("table"), ""),
    ("cached = full", planted.Forgets("none"), "itself alone"),
    ("chunks = whole", planted.ChunksLookAhead(), "no causal mask"),
    ("chunks = whole", planted.ChunksFromTheFirstKey(), ""),
    ("chunks = whole", planted.StepsAtZero(), "single steps"),
    ("crossing the limit in decoding", planted.DynamicNTK(), ""),
    ("crossing the limit in decoding", planted.DynamicNTK(limit=4000), ""),
    ("padded rows decode at their own places", planted.StepsNumberSlots("table"), "only the steps after it"),
    ("rows padded on the right decode at their own places", planted.StepsNumberSlots(), "only the steps after it"),
    ("a plain read leaves the cache alone", KeepsInside(Tiny()), ""),
    ("reorder = rerun", StaysInPlace(Tiny()), "as if nothing had been reordered"),
    ("beam with cache = beam without", StaysInPlace(Tiny()), ""),
    (f"left {PAD}", planted.NumbersSlots("table"), "right once positions cumsum(mask) - 1 are given"),
    (f"left {PAD}", planted.DropsTheMask(), "the mask changes nothing"),
    (f"left {PAD}", planted.HidesTheReal(), "True is taken for padding"),
    (f"left {PAD}", planted.EmptyRowIsNaN(), "a row that sees nothing gives NaN"),
    (f"left {PLACED}", planted.EmptyRowIsNaN(), "a row that sees nothing gives NaN"),
    (f"left {PAD}", planted.SeesPadding(), "what stands in padded places is seen"),
    (f"left {PAD}", target(planted.NumbersSlots("table"), can=frozenset({"mask", "module"})), "counts: positions"),
    (f"right {PAD}", planted.DropsTheMask(causal=False), "the mask changes nothing"),
    (f"interior {PAD}", planted.NumbersSlots(), "right once positions cumsum(mask) - 1 are given"),
    (f"left {PLACED}", planted.IgnoresPlaces("table"), "not the ones used"),
    (f"right {PLACED}", planted.DropsTheMask(causal=False), "the mask changes nothing"),
    (f"interior {PLACED}", planted.IgnoresPlaces(), ""),
    ("batch mates change nothing", planted.SeesTheBatch(), ""),
    ("packed = separate", planted.DocumentsMeet(), "sees the one before it"),
    ("packed = separate", planted.DocumentsGoOn("table"), "do not start at position 0"),
    ("an empty row is harmless", planted.EmptyRowIsNaN(), "softmax over nothing"),
    ("masked tokens get no gradient", planted.SeesPadding(), ""),
    ("a window is as wide as it says", planted.OneTooWide(window=4), "the window is 5 wide, not 4"),
    ("windows reach as far as their layers", planted.OneTooWide(window=4), ""),
    ("the cache keeps the window", planted.LosesAKey(window=4), ""),
    ("past the table is an error", planted.Wraps("table"), "positions wrap"),
    ("past the table is an error", planted.Clamps("table"), "positions are clamped"),
    ("past the table is an error", planted.WrappedRotation(), "they wrap"),
    ("past the table is an error", target(planted.Clamps("table"), can=frozenset()), "a text of 65 tokens"),
    ("bfloat16 moves no position", planted.AnglesInItsDtype(limit=2000), "positions are held in"),
    ("bfloat16 moves no position", planted.RatesInItsDtype(limit=2000), "rates of the angles"),
    ("float16 moves no position", planted.AnglesInItsDtype(limit=8000), "positions are held in"),
    ("autocast moves no position", planted.AnglesInItsDtype(limit=2000), "positions are held in"),
    ("the source is seen", planted.DeafToItsSource(cross=True), ""),
    ("source padding on the left changes nothing", planted.SourcePaddingSeen(cross=True), ""),
    ("source padding on the right changes nothing", planted.SourcePaddingSeen(cross=True), ""),
    ("rows keep their source", planted.SharesASource(cross=True), ""),
    ("the source is seen through the cache", planted.StepsDeafToTheSource(cross=True), ""),
]


@pytest.mark.parametrize(("law", "model", "why"), PLANTED, ids=lambda x: x if isinstance(x, str) else type(x).__name__)
def test_a_planted_fault_fails_the_law_named_for_it(law, model, why):
    found = LAWS[law](model if isinstance(model, TinyTarget) else target(model))
    assert found.verdict == "FAIL"
    assert why in found.note
    assert found.error > found.tolerance


def test_every_law_has_a_planted_fault():
    assert {law for law, _, _ in PLANTED} == set(LAWS)
    assert set(LAWS) <= set(RULES)


@pytest.mark.slow
def test_a_first_read_that_is_wrong_is_laid_to_no_other_law():
    report = gn.audit(FirstReadWrong(Tiny("rope", limit=40)))
    own = [f.law for f in report.failed if AFTER not in f.note]
    assert own == ["chunks = whole", "crossing the limit in decoding"]
    assert "before the limit already" in report["crossing the limit in decoding"].note
    assert (
        report["beam with cache = beam without"].note
        == f'{AFTER} "chunks = whole", which is broken too: ' + "mend that first"
    )
    for law in ("cached = full", "reorder = rerun", "padded rows decode at their own places"):
        assert report[law].verdict == "pass"


HEALTHY = [
    *(Tiny(position) for position in ("table", "sinusoid", "rope", "alibi", "none")),
    *(Tiny(position, causal=False) for position in ("table", "sinusoid", "rope", "alibi")),
    *(Tiny("rope", window=4, std=std) for std in (0.02, 1.0)),
    *(Tiny("rope", layers=6, std=std) for std in (0.0, 0.02, 1.0)),
    Tiny("table", cross=True),
    Tiny("table", limit=8),
    Tiny("table", limit=300),
    Tiny("rope", limit=100_000),
    Tiny("alibi", vocab=4),
    Tiny("sinusoid", layers=1),
    Tiny("rope").double(),
    Tiny("rope").bfloat16(),
]


@pytest.mark.slow
@pytest.mark.parametrize("model", HEALTHY, ids=lambda m: f"{m.position}, {len(m.blocks)}")
def test_healthy_models_break_no_law(model):
    findings = [law(target(model)) for law in LAWS.values()]
    assert [(f.law, f.error, f.note) for f in findings if f.verdict == "FAIL"] == []


def test_without_positions_no_law_of_positions_passes():
    t = target(Tiny("none"))
    for law in ("every row has its own positions", "shift", "past the table is an error", "bfloat16 moves no position"):
        assert LAWS[law](t).verdict == "not observable"


def test_a_bag_of_words_breaks_the_law_of_order_whatever_its_weights():
    for std in (0.0, 0.02, 0.3):
        assert LAWS["order is seen"](target(planted.BagOfWords(causal=False, std=std))).verdict == "FAIL"


@pytest.mark.parametrize("seed", range(6))
def test_positions_without_end_are_seen_to_go_on_whatever_is_drawn(seed):
    assert LAWS["past the table is an error"](target(Tiny("rope", seed=seed), seed=seed)).verdict == "pass"


def test_a_shift_that_nobody_promised_is_not_judged():
    found = LAWS["shift"](target(Tiny("sinusoid"), shift="unknown"))
    assert found.verdict == "not applicable"
    assert "moves logits by" in found.note


@pytest.mark.slow
def test_laws_leave_a_model_as_it_was():
    model = Tiny("rope", window=4, cross=True)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    for law in LAWS.values():
        law(target(model))
    assert not any(m.training for m in model.modules())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    assert all(p.grad is None and p.requires_grad for p in model.parameters())
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())


@pytest.mark.slow
def test_the_same_seed_gives_the_same_findings():
    model = planted.NumbersSlots("table")
    once, again = ([law(target(model, seed=3)) for law in LAWS.values()] for _ in range(2))
    assert once == again
    assert once != [law(target(model, seed=4)) for law in LAWS.values()]
