"""What is lent to a law comes back as it was, whatever the law did to it."""

import functools
from collections import OrderedDict
from contextlib import suppress
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from gnomon.audit.restore import cast_while_asking, draw, restore_afterwards


class Holder(nn.Module):
    """A part of every kind that a call may leave something in."""

    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)
        self.view = self.linear.weight.detach().T
        self.register_buffer("table", torch.arange(4.0), persistent=False)
        self.cached, self.by_length, self.seen = None, {}, []
        self.beside = SimpleNamespace(table=torch.ones(2), calls=0)
        self.ordered = OrderedDict(first=torch.zeros(1))
        count = torch.zeros(1)

        def counting():
            nonlocal count
            count = count + 1
            return count

        self.counting, self.part = counting, functools.partial(torch.add, torch.zeros(2))

    def state(self):
        """All that can be seen of it."""
        numbers = [*self.parameters(), *self.buffers(), self.view, self.beside.table, *self.part.args]
        return (
            [(x.dtype, x.detach().double().clone(), x.data_ptr()) for x in numbers],
            [self.training, self.norm.training, self.cached, dict(self.by_length), list(self.seen), self.beside.calls],
            list(self.ordered),
            [name for name, _ in self.named_modules()],
            float(self.counting()),
        )


def drawn(m):
    draw(m, torch.Generator())


def called(m):
    m.cached, m.by_length[3], m.beside.calls, m.ordered["more"] = torch.ones(1), torch.ones(3), 1, 2
    m.seen.append(torch.ones(2))
    m.beside.table.add_(1)
    m.part.args[0].add_(1)
    m.counting()


def trained(m):
    m.train().norm(torch.randn(3, 4))  # its running statistics move


def parts(m):
    m.more, m.linear = nn.Linear(2, 2), nn.Linear(4, 4)


@pytest.mark.parametrize(
    "change",
    [drawn, called, trained, parts, lambda m: m.bfloat16(), lambda m: m.to(torch.float64).float(), lambda m: m.train()],
)
def test_whatever_a_law_does_is_undone(change):
    model = Holder().eval()
    before = model.state()
    model.counting.__closure__[0].cell_contents = torch.zeros(1)
    with restore_afterwards(model):
        change(model)
    after = model.state()
    for (dtype, was, at), (now_dtype, now, now_at) in zip(before[0], after[0], strict=True):
        assert (dtype, at) == (now_dtype, now_at)
        assert torch.equal(was, now)
    assert before[1:] == after[1:]


def test_it_comes_back_from_an_error_too():
    model = Holder()
    before = model.linear.weight.clone()
    with suppress(KeyboardInterrupt), restore_afterwards(model):
        drawn(model)
        raise KeyboardInterrupt
    assert torch.equal(model.linear.weight, before)


def test_weights_change_where_they_lie():
    """A tie by a view of the weight holds while weights are drawn anew, as it does in training."""
    model = Holder()
    with restore_afterwards(model):
        drawn(model)
        assert torch.equal(model.view, model.linear.weight.T)


def test_one_loan_within_another():
    model = Holder()
    before = model.linear.weight.clone()
    with restore_afterwards(model):
        drawn(model)
        larger = model.linear.weight.clone()
        with restore_afterwards(model):
            model.bfloat16()
        assert torch.equal(model.linear.weight, larger)
    assert torch.equal(model.linear.weight, before)


def test_what_cannot_be_written_is_left_alone():
    with torch.inference_mode():
        inferred = torch.zeros(2)
    held = SimpleNamespace(meta=torch.empty(2, device="meta"), one=torch.zeros(1).expand(3), inferred=inferred)
    with restore_afterwards(held, lambda: held, int, torch):
        held.meta = None
    assert held.meta.is_meta


def test_a_function_of_a_module_is_asked_in_another_dtype():
    model = nn.Linear(2, 2)
    asked = cast_while_asking(model, torch.float64, lambda x: model(x.to(model.weight.dtype)))
    assert asked(torch.ones(2)).dtype == torch.float64
    assert model.weight.dtype == torch.float32


def test_a_buffer_written_while_gradients_are_recorded_is_no_part_of_the_graph():
    """A cache inside a model, a plain tensor, into which each call writes."""

    class Writes(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.cache = nn.Linear(4, 4), torch.zeros(2, 4)

        def forward(self, x):
            self.cache[:] = self.linear(x)
            return self.cache.sum(0)

    model = Writes()
    for _ in range(2):
        with restore_afterwards(model):
            model(torch.ones(2, 4)).sum().backward()
        assert (model.cache.is_leaf, model.cache.requires_grad) == (True, False)
        assert not model.cache.any()
