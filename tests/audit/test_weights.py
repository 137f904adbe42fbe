"""Ties are one tensor and stay one; resizing and saving keep what there was."""

from copy import deepcopy

import pytest
import torch
from torch import nn
from variants import asked, student, without_a_tie

from gnomon.audit import Torch
from gnomon.audit.laws.weights import are_tied

ONE, STAYS = "ties are one tensor", "a tie stays a tie"


def test_one_tensor_passes_and_two_with_the_same_numbers_do_not():
    assert asked(ONE, student()).verdict == "pass"
    copied = asked(ONE, student(without_a_tie("self.embedding.table.weight.data.copy_(self.head.weight)")))
    assert (copied.verdict, copied.error) == ("FAIL", 1.0)
    assert copied.note.startswith("a tied copy instead of a tied weight")


def test_ends_that_are_apart_break_only_a_promise():
    assert asked(ONE, student(without_a_tie())).note == "its ends are promised to be one tensor, but are two"
    assert asked(ONE, student(without_a_tie() | {", tied=True": ""})).verdict == "not applicable"
    assert asked(ONE, student(without_a_tie() | {"tied=True": "tied=False"})).verdict == "not applicable"


def test_a_copy_that_nobody_promised_is_seen_too():
    copied = without_a_tie("self.embedding.table.weight.data.copy_(self.head.weight)")
    assert asked(ONE, student(copied | {", tied=True": ""})).verdict == "FAIL"
    assert asked(ONE, student(copied | {"tied=True": "tied=False"})).verdict == "not applicable"


class Borrowed(nn.Module):
    """A head that is a closure over the table: tied, until it is copied."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(11, 4)
        self.head = lambda x: x @ self.table.weight.T

    def forward(self, ids):
        return self.head(self.table(ids).relu())


class Shared(Borrowed):
    """The same tie, in a method."""

    def __init__(self):
        super().__init__()
        del self.head

    def head(self, x):
        return x @ self.table.weight.T


def test_a_tie_in_a_closure_is_cut_by_a_deep_copy():
    assert asked(STAYS, Torch(Shared())).verdict == "pass"
    found = asked(STAYS, Torch(Borrowed()))
    assert found.verdict == "FAIL"
    assert found.note == "cut by: a deep copy"


class Loading(Shared):
    """Loading makes a head of its own."""

    def load_state_dict(self, *args, **more):
        weight = self.table.weight.detach().clone()
        self.head = lambda x: x @ weight.T
        return super().load_state_dict(*args, **more)


class Casting(Shared):
    """So does a cast."""

    def to(self, *args, **more):
        weight = super().to(*args, **more).table.weight.detach().clone()
        self.head = lambda x: x @ weight.T
        return self


def test_what_cut_a_tie_is_named():
    assert asked(STAYS, Torch(Loading())).note == "cut by: loading a state dict"
    assert asked(STAYS, Torch(Casting())).note == "cut by: a cast"


def test_what_was_never_tied_cannot_be_cut():
    assert asked(STAYS, student(without_a_tie())).verdict == "not applicable"
    assert asked(STAYS, student()).verdict == "pass"


def test_looking_for_a_tie_leaves_the_model_as_it_was():
    target = student()
    before = deepcopy(target.module.state_dict())
    assert are_tied(target, target.ids(1, 3))
    assert all(torch.equal(before[name], now) for name, now in target.module.state_dict().items())
    assert not are_tied(student(without_a_tie()), target.ids(1, 3))


class Kept(Torch):
    """A student who can save and resize: `spoil` is done to the one that comes back."""

    def __init__(self, spoil=lambda model: None):
        super().__init__(student().model)
        self.spoil, self.can = spoil, self.can | {"save", "resize"}

    def save_and_load(self, folder):
        torch.save(self.module.state_dict(), folder / "weights.pt")
        other = self.copy()
        other.module.load_state_dict(torch.load(folder / "weights.pt"))
        self.spoil(other.module)
        return other

    def resize(self, rows):
        other = self.copy()
        weight, tie = torch.randn(rows, 32), other.module.head
        weight[: self.vocab] = tie.weight.detach()
        tie.weight = other.module.embedding.table.weight = nn.Parameter(weight)
        other.vocab = rows
        self.spoil(other.module)
        return other


def untie(model):
    model.head.weight = nn.Parameter(model.head.weight.detach().clone())


@torch.no_grad()
def make_anew(model):
    model.head.weight.normal_()


def test_saving_and_resizing_keep_rows_logits_and_the_tie():
    for law in ("a saved model is the same", "resizing keeps old rows", STAYS):
        assert asked(law, Kept()).verdict == "pass"


@pytest.mark.parametrize("law", ["a saved model is the same", "resizing keeps old rows"])
def test_a_head_made_anew_is_seen(law):
    assert asked(law, Kept(make_anew)).verdict == "FAIL"


def test_rows_that_moved_are_told_from_logits_that_moved():
    assert asked("resizing keeps old rows", Kept(make_anew)).note == "rows of the table are not those it had"

    @torch.no_grad()
    def norm(model):
        model.norm.weight.add_(1)

    assert "copy the rows" in asked("resizing keeps old rows", Kept(norm)).note


def test_a_tie_cut_by_saving_or_resizing_is_named():
    assert asked(STAYS, Kept(untie)).note == "cut by: saving and reading, resizing"
