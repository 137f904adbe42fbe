"""All at once and one after another: the same logits, one forward against many."""

import pytest
import torch

import gnomon as gn
from gnomon import plots


@pytest.mark.parametrize("position", ["learned", "rope", "alibi", "t5"])
def test_both_ways_give_the_same_logits(model, position):
    timing = plots.parallel_and_sequential(model(position=position, max_positions=16), [5, 6, 7, 5, 9], repeats=1)
    assert timing.tokens == 5
    assert timing.difference < 1e-5
    assert timing.ratio == timing.sequential / timing.parallel


def test_one_forward_against_one_per_token(model):
    m, shapes = model(), []
    m.input.register_forward_pre_hook(lambda _, arguments: shapes.append(tuple(arguments[0].shape)))
    plots.parallel_and_sequential(m, [1, 2, 3], repeats=2)
    assert shapes == [(1, 3), (1, 1), (1, 1), (1, 1)] * 2


def test_reading_at_once_is_faster(model):
    """By an order of magnitude; asked for here is only that it is faster."""
    assert plots.parallel_and_sequential(model(), list(range(100)), repeats=2).ratio > 1


def test_timing_leaves_the_model_as_it_was(model):
    m = model().train()
    plots.parallel_and_sequential(m, [1, 2], repeats=1)
    assert m.training
    assert torch.is_grad_enabled()


def test_a_bidirectional_model_cannot_decode(model):
    with pytest.raises(gn.BadValue, match="no decoding to time"):
        plots.parallel_and_sequential(model(causal=False), [1, 2])
