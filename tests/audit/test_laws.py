"""Laws about the behaviour of anybody's model pass healthy models of every kind, and leave them as they were."""

import pytest
import torch
from faults import planted
from tiny import Tiny, TinyTarget, target

import gnomon as gn
from gnomon.audit import LAWS
from gnomon.audit.consequences import AFTER

OF_MODELS = [law for law in LAWS.values() if law.concerns(target(Tiny()))]


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
    findings = [law(target(model)) for law in OF_MODELS]
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
    for law in OF_MODELS:
        law(target(model))
    assert not any(m.training for m in model.modules())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    assert all(p.grad is None and p.requires_grad for p in model.parameters())
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())


@pytest.mark.slow
def test_the_same_seed_gives_the_same_findings():
    model = planted.NumbersSlots("table")
    once, again = ([law(target(model, seed=3)) for law in OF_MODELS] for _ in range(2))
    assert once == again
    assert once != [law(target(model, seed=4)) for law in OF_MODELS]
