"""A hint names a cause that was tested: each is shown by a fault of its own, and by no other that looks like it."""

import math

import pytest
import torch
from faults import planted
from tiny import HEADS, D, Tiny, target
from torch import nn
from torch.nn import functional as F

import gnomon as gn
from gnomon.audit import LAWS

# ------------------------------------------------------------------ two like calls differ


class DropsInAFunction(Tiny):
    def drop(self, block, a):
        return F.dropout(a, 0.1)


class DropsInAModule(Tiny):
    """A Dropout that is no part of the model stays in training mode."""

    def drop(self, block, a):
        return nn.Dropout(0.1)(a)


class MakesLayers(Tiny):
    def drop(self, block, a):
        return a + nn.Linear(D, D)(a)


class AddsNoise(Tiny):
    def start(self, ids, positions):
        x = super().start(ids, positions)
        return x + 0.1 * torch.randn_like(x)


class Counts(Tiny):
    """Each call is another one."""

    called = 0.0

    def start(self, ids, positions):
        self.called += 0.1
        return super().start(ids, positions) * (1 + self.called)


CHANCES = [
    (DropsInAFunction, "F.dropout needs training=self.training"),
    (DropsInAModule, "a Dropout that is made in forward"),
    (MakesLayers, "forward makes new layers (Linear)"),
    (AddsNoise, "random numbers are drawn in evaluation mode: randn_like in"),
    (Counts, "the model keeps something from one call to the next"),
]


@pytest.mark.parametrize(("model", "says"), CHANCES)
def test_what_differs_between_two_calls_is_seen_before_it_is_named(model, says):
    note = LAWS["evaluation is deterministic"](target(model())).note
    assert [words for _, words in CHANCES if words in note] == [says], note


def test_a_dropout_in_a_block_is_named_by_its_place():
    model = Tiny()
    model.blocks[1].drop.train()
    note = LAWS["evaluation is deterministic"](target(model)).note
    assert "dropout acts in blocks.1.drop" in note
    assert "this part of it is in training mode" in note


# ------------------------------------------------------------------ a token sees those to come


class HeadsAsTokens(Tiny):
    """Heads are put together without transpose(1, 2)."""

    def attend(self, block, x, positions, seen, past):
        q, k, v = (self.heads(part) for part in block.qkv(block.norm(x)).chunk(3, -1))
        scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~seen[:, None], -math.inf)
        return block.out((scores.softmax(-1) @ v).reshape(x.shape)), None


class NormOverTokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(D))

    def forward(self, x):
        return (x - x.mean((1, 2), keepdim=True)) * self.weight


class SeesThroughItsNorm(Tiny):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.blocks[0].norm = NormOverTokens()


AHEAD = [
    (HeadsAsTokens, f"{HEADS} heads are put together as if they were tokens"),
    (SeesThroughItsNorm, "tokens meet in blocks.0.norm (NormOverTokens)"),
    (planted.NoMask, "no mask hides those to come"),
    (planted.WrongWayRound, "the mask is the wrong way round"),
    (planted.SeesTheNext, "sees the next one"),
    (planted.NotItself, "only the first token looks ahead"),
]


@pytest.mark.parametrize(("model", "says"), AHEAD)
@pytest.mark.parametrize("layers", [1, 2])
def test_how_a_token_sees_those_to_come_is_told_apart(model, says, layers):
    if model is SeesThroughItsNorm and layers == 1:
        pytest.skip("one layer is looked at as a whole")
    note = LAWS["causality"](target(model(layers=layers))).note
    assert [words for _, words in AHEAD if words in note] == [says], note


# ------------------------------------------------------------------ the past, and its order


class NoMeetings(Tiny):
    def attend(self, block, x, positions, seen, past):
        return torch.zeros_like(x), None


class Mean(Tiny):
    """Positions are added, and the tokens behind one are averaged."""

    def __init__(self):
        super().__init__("table", layers=1)

    def attend(self, block, x, positions, seen, past):
        return block.out((seen.float() @ x) / seen.sum(-1, keepdim=True)), None


@pytest.mark.parametrize(
    ("law", "model", "says"),
    [
        ("the past is seen", planted.SeesItselfAlone(), "no token sees another one"),
        ("the past is seen", NoMeetings(), "no token sees another one"),
        ("the past is seen", planted.WrongWayRound(), "the mask is the wrong way round"),
        ("order is seen", Mean(), "so positions are there; but what tokens are summed by"),
        ("order is seen", planted.BagOfWords(layers=1), "a position is not added, not applied"),
    ],
)
def test_what_is_lost_of_the_past_is_told_apart(law, model, says):
    found = LAWS[law](target(model))
    assert (found.verdict, says in found.note) == ("FAIL", True), found.note


# ------------------------------------------------------------------ what is not a number


def test_where_numbers_are_lost_is_named():
    note = LAWS["logits are numbers"](target(planted.NotItselfButNaN())).note
    assert "NaN before blocks.0.out, after blocks.0.qkv" in note
    note = LAWS["logits are numbers"](target(planted.DividesByZero())).note
    assert "numbers are lost before blocks.0.norm" in note


def test_a_cause_whose_question_makes_the_model_raise_is_none():
    class Short(Tiny):
        """Looks ahead, and reads no text of more than 5 tokens."""

        def order(self, real):
            if real.shape[1] > 5:
                raise IndexError("too long")
            return torch.ones_like(super().order(real))

    found = gn.audit(target(Short(), limit=5, table_ends=True), only="causality")["causality"]
    assert found.verdict == "FAIL"


def test_what_sees_nothing_before_it_is_not_said_to_lose_positions():
    """A mask the wrong way round hides the past, and so its order: positions are not to blame."""
    report = gn.audit(target(planted.WrongWayRound("table")), only=["order is seen", "a position reaches"])
    assert "so positions are there" not in report["order is seen"].note
    assert report["a position reaches attention"].verdict == "not applicable"
    assert "see whether the past is seen" in report["a position reaches attention"].note


class KeepsItsGraph(Tiny):
    """A cache inside it that every call writes into: no two calls can be gone back through, whatever lies between."""

    def __init__(self):
        super().__init__()
        self.kept = torch.zeros(8, 64, D)

    def start(self, ids, positions):
        self.kept[: len(ids), : ids.shape[1]] = super().start(ids, positions)
        return self.kept[: len(ids), : ids.shape[1]].clone()


def test_a_call_in_another_mode_is_not_blamed_for_what_any_call_does():
    report = gn.audit(target(KeepsItsGraph()), only=["call history", "a deep copy", "every part"])
    assert report.failed == ()
    assert report["a deep copy is a model of its own"].verdict == "pass"
