"""The scale counts once, padding is not trained, dropout acts once and sleeps in evaluation."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from variants import asked, student

from gnomon.audit import Torch
from gnomon.audit.laws.embedding import first_block_input

SCALE, PADDING, DROPOUT = "the scale counts once", "padding is not trained", "dropout acts once"
SQRT = "self.scale = math.sqrt(d_model)"

# ------------------------------------------------------------------ scale


@pytest.mark.parametrize("scale", ["1.0", "math.sqrt(d_model)"])
def test_one_and_the_root_of_the_width_are_right(scale):
    assert asked(SCALE, student({SQRT: f"self.scale = {scale}"})).verdict == "pass"


def test_a_scale_of_d_model_is_the_root_twice():
    found = asked(SCALE, student({SQRT: "self.scale = float(d_model)"}))
    assert found.verdict == "FAIL"
    assert found.note.startswith("scaled twice: token vectors are multiplied by 32")


def test_another_scale_is_judged_by_what_was_promised():
    twelve = {SQRT: "self.scale = 12.0"}
    assert asked(SCALE, student(twelve)).verdict == "not applicable"
    assert asked(SCALE, student(twelve | {", tied=True": ", scale=12.0"})).verdict == "pass"
    once = asked(SCALE, student({SQRT: "self.scale = 1.0"} | {", tied=True": ", scale=12.0"}))
    assert once.note == "token vectors are multiplied by 1, not by 12"
    twice = asked(SCALE, student({SQRT: "self.scale = 144.0"} | {", tied=True": ", scale=12.0"}))
    assert "scaled twice" in twice.note


def test_positions_that_are_added_do_not_count():
    added = {"self.drop(self.embedding(ids))": "self.drop(self.embedding(ids) + torch.arange(ids.shape[1])[:, None])"}
    assert asked(SCALE, student(added)).verdict == "pass"


def test_a_norm_before_the_blocks_is_not_accused():
    normed = {"self.drop(self.embedding(ids))": "self.norm(self.drop(self.embedding(ids)))"}
    assert "does more than multiply" in asked(SCALE, student(normed)).note


def test_asking_what_the_first_block_is_given_stops_there_and_leaves_nothing_behind():
    target = student()
    x = first_block_input(target, target.ids(2, 3))
    assert x.shape == (2, 3, 32)
    assert target.logits(target.ids(2, 3)).shape == (2, 3, 65)


# ------------------------------------------------------------------ padding

TABLE = "self.table = nn.Embedding(vocab, d_model)"


def test_padding_gets_no_gradient_from_being_looked_up():
    padded = {TABLE: "self.table = nn.Embedding(vocab, d_model, padding_idx=0)"}
    assert asked(PADDING, student(padded)).verdict == "pass"
    indexed = asked(PADDING, student(padded | {"self.table(ids)": "self.table.weight[ids]"}))
    assert indexed.verdict == "not applicable"  # no nn.Embedding is given the ids: this one only holds the weight
    by_hand = padded | {"self.table(ids)": "self.table(ids) + self.table.weight[ids] - self.table(ids).detach()"}
    assert asked(PADDING, student(by_hand)).verdict == "FAIL"


def test_without_padding_there_is_nothing_to_train():
    assert asked(PADDING, student()).verdict == "not applicable"


# ------------------------------------------------------------------ dropout


class Dropping(nn.Module):
    """Two blocks; `act(self, x)` drops out somewhere."""

    def __init__(self, act, p=0.1):
        super().__init__()
        self.table, self.act = nn.Embedding(11, 4), act
        self.first, self.second = nn.Dropout(p), nn.Dropout(p)

    def forward(self, ids):
        return self.act(self, self.table(ids)) @ self.table.weight.T


@pytest.mark.parametrize(
    "act",
    [
        lambda m, x: m.second(m.first(x) * 2),
        lambda m, x: m.first(x) + m.second(x),
        lambda m, x: F.dropout(x, 0.1, m.training) + 1,
    ],
)
def test_dropout_with_something_between_is_dropout_once(act):
    assert asked(DROPOUT, Torch(Dropping(act))).verdict == "pass"


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (lambda m, x: m.second(m.first(x)), "dropout twice: second is given what first has dropped already"),
        (lambda m, x: F.dropout(m.first(x), 0.1, m.training), "dropout twice: the model is given what first"),
    ],
)
def test_dropout_of_what_was_dropped_is_dropout_twice(act, says):
    found = asked(DROPOUT, Torch(Dropping(act)))
    assert found.verdict == "FAIL"
    assert found.note.startswith(says)


@pytest.mark.parametrize(
    "act",
    [
        lambda m, x: F.dropout(x, 0.1),
        lambda m, x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.1),
    ],
)
def test_dropout_that_does_not_sleep_in_evaluation_is_named(act):
    found = asked(DROPOUT, Torch(Dropping(act)))
    assert found.verdict == "FAIL"
    assert "dropout acts in evaluation" in found.note


def test_no_dropout_cannot_act_twice():
    assert asked(DROPOUT, Torch(Dropping(lambda m, x: m.second(m.first(x)), p=0.0))).verdict == "not applicable"


def test_the_model_is_left_in_evaluation_without_hooks():
    target = Torch(Dropping(lambda m, x: m.first(x)))
    asked(DROPOUT, target)
    assert not target.module.training
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in target.module.modules())
    assert torch.equal(target.logits(target.ids(1, 3)), target.logits(target.ids(1, 3)))
