"""A measure tells how far it could be off."""

import numpy as np
import pytest

from gnomon.errors import BadValue
from gnomon.train.measure import Measure, bootstrap, ratio, share


@pytest.mark.parametrize(("hits", "n"), [(5, 10), (1, 10), (0, 10), (10, 10), (995, 1000)])
def test_the_ends_of_a_share_are_where_what_was_seen_is_1_96_standard_errors_away(hits, n):
    """Wilson's interval by its definition: (share - p)^2 = z^2 p (1 - p) / n at both ends, or an end at 0 or 1."""
    found = share(hits, n)
    assert (found.value, found.count) == (hits / n, n)
    for end in (found.low, found.high):
        assert end in (0.0, 1.0) or (found.value - end) ** 2 == pytest.approx(1.959964**2 * end * (1 - end) / n)
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.low < found.high


def test_the_interval_of_a_mean_has_the_width_of_its_standard_error():
    values = np.random.default_rng(1).normal(3.0, 2.0, size=400)
    found = ratio(values, np.ones(400))
    error = values.std() / 400**0.5
    assert found.value == pytest.approx(values.mean())
    assert (found.high - found.low) / (2 * 1.96 * error) == pytest.approx(1, abs=0.1)
    assert found.low < values.mean() < found.high


def test_units_with_more_targets_weigh_more():
    assert ratio(np.array([6.0, 1.0]), np.array([3.0, 1.0])).value == 1.75


def test_units_all_alike_leave_no_doubt_and_the_draws_are_the_same_each_time():
    alike = ratio(np.full(50, 2.0), np.ones(50))
    assert (alike.low, alike.high) == pytest.approx((2.0, 2.0))
    values = np.random.default_rng(2).random(30)
    assert ratio(values, np.ones(30)) == ratio(values, np.ones(30))


def test_any_statistic_of_weighted_units_has_an_interval():
    found = bootstrap(lambda times: float((times > 0).mean()), 200)
    assert found.value == 1.0
    assert found.high < 0.75  # a draw of n from n leaves out about 1/e of them
    assert 0.5 < found.low < 1 - 1 / np.e < found.high


def test_a_growing_function_of_a_measure_keeps_its_order():
    assert Measure(1.0, 0.0, 2.0, 7).map(lambda x: 10 * x) == Measure(10.0, 0.0, 20.0, 7)


def test_nothing_has_no_measure():
    for measure in (lambda: share(0, 0), lambda: ratio(np.empty(0), np.empty(0))):
        with pytest.raises(BadValue, match="nothing is held out"):
            measure()
