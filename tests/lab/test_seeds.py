"""Medians and orders over seeds."""

from itertools import permutations

import pytest

from gnomon.errors import BadValue
from gnomon.lab.seeds import above, agreement, kendall, median


def test_the_same_order_is_1_and_the_opposite_one_minus_1():
    assert kendall([1, 2, 3, 4], [10, 20, 30, 40]) == 1
    assert kendall([1, 2, 3, 4], [4, 3, 2, 1]) == -1


def test_without_ties_it_counts_pairs():
    for order in permutations(range(5)):
        swapped = sum(order[i] > order[j] for i in range(5) for j in range(i + 1, 5))
        assert kendall(range(5), order) == pytest.approx(1 - 2 * swapped / 10)


def test_ties_weigh_as_tau_b_has_it():
    assert kendall([1, 1, 2, 3], [1, 2, 3, 4]) == pytest.approx(5 / (5 * 6) ** 0.5)
    assert kendall([1, 1, 1], [1, 2, 3]) == 0


def test_only_pairs_of_one_group_count():
    assert kendall([1, 2, 2, 1], [1, 2, 20, 10], [0, 0, 1, 1]) == 1
    assert kendall([1, 2, 2, 1], [1, 2, 10, 20], [0, 0, 1, 1]) == 0


def test_an_order_needs_two():
    with pytest.raises(BadValue, match="2 or more"):
        kendall([1], [1])


def test_the_median_lies_in_its_interval_and_one_seed_has_none_to_speak_of():
    found = median([0.1, 0.5, 0.9, 0.4, 0.6])
    assert found.value == 0.5
    assert 0.1 <= found.low < found.value < found.high <= 0.9
    assert median([0.3]).low == median([0.3]).high == 0.3


def test_seeds_that_agree_settle_an_order_and_those_that_do_not_leave_it_open():
    sure = agreement([1, 2], [[0.1, 0.2, 0.15], [0.8, 0.7, 0.9]])
    assert (sure.value, sure.low, sure.high) == (1, 1, 1)
    open_ = agreement([1, 2], [[0.1, 0.9, 0.2], [0.8, 0.1, 0.5]])
    assert open_.low == -1
    assert open_.high == 1


def test_differences_are_of_the_same_seeds():
    assert above([1.1, 2.1, 3.1], [1.0, 2.0, 3.0]).low > 0
