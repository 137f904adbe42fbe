"""Intervals say how sure a number is, as far as the choice of documents goes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.lab.bootstrap import Bootstrap

SIZES = np.array([300.0, 500, 200, 900, 400, 350, 620, 480])


def nats(seed):
    return np.random.default_rng(seed).uniform(0.5, 2, len(SIZES)) * SIZES


def test_the_value_is_what_was_measured():
    found = Bootstrap(SIZES).bits_per_byte(nats(0))
    assert found.value == pytest.approx(nats(0).sum() / SIZES.sum() / np.log(2))
    assert found.low < found.value < found.high


@given(st.integers(0, 99), st.floats(0.5, 2))
@settings(max_examples=20, deadline=None)
def test_what_all_documents_agree_on_is_certain(seed, ratio):
    """Each document pays `ratio` times as much: that is the increase, whichever are drawn."""
    found = Bootstrap(SIZES).increase(ratio * nats(seed), nats(seed))
    assert (found.value, found.low, found.high) == pytest.approx((ratio - 1,) * 3, abs=1e-9)


def test_what_documents_disagree_on_is_not():
    before = nats(0)
    after = before * np.array([1.5, 0.6, 1.4, 0.7, 1.3, 0.8, 1.2, 0.5])
    found = Bootstrap(SIZES).increase(after, before)
    assert found.low < 0 < found.high
    assert 0 in found
    assert found.high + 0.1 not in found


@pytest.mark.slow
def test_the_interval_holds_the_truth_about_as_often_as_it_says():
    """Documents of a known population: 95 % of intervals hold its mean; with 30 documents, slightly fewer."""
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(200):
        size = np.full(30, 100.0)
        paid = rng.normal(1.0, 0.3, 30) * size
        hits += 1 / np.log(2) in Bootstrap(size, seed=0).bits_per_byte(paid)
    assert 178 <= hits <= 198


def test_a_difference_is_that_of_the_two_numbers():
    bootstrap = Bootstrap(SIZES)
    found = bootstrap.difference(nats(1), nats(2))
    one, other = (bootstrap.bits_per_byte(nats(seed)).value for seed in (1, 2))
    assert found.value == pytest.approx(one - other)


def test_the_same_draws_come_every_time():
    assert Bootstrap(SIZES).bits_per_byte(nats(3)) == Bootstrap(SIZES).bits_per_byte(nats(3))


def test_a_few_documents_settle_no_order():
    """Four documents that all agree are still four; the same difference over twenty is settled."""
    for n, settled in ((4, False), (20, True)):
        size, better = np.full(n, 100.0), np.linspace(90, 110, n)
        assert Bootstrap(size).sure(better, better + 5) is settled
