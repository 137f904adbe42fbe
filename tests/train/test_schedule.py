"""The learning rate is a function of the step and of nothing else."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.train.schedule import warmup_cosine

# lr(s) = 1e-3 / 2 (1 + cos(pi (s - 10) / 90)), worked out in float64
COSINE = {49: 6.03955846e-4, 50: 5.86824089e-4, 51: 5.69586550e-4}


@pytest.mark.parametrize(("step", "rate"), COSINE.items())
def test_the_cosine_after_warm_up_has_its_published_values(step, rate):
    assert warmup_cosine(step, peak=1e-3, warmup=10, steps=100) == pytest.approx(rate, rel=1e-8)


def test_warm_up_reaches_the_peak_in_equal_steps_and_starts_above_zero():
    assert [warmup_cosine(s, 1.0, 4, 100) for s in range(5)] == [0.25, 0.5, 0.75, 1.0, 1.0]


@given(warmup=st.integers(0, 50), steps=st.integers(1, 200), floor=st.floats(0, 1))
def test_the_rate_rises_to_the_peak_then_falls_to_the_floor_and_stays_there(warmup, steps, floor):
    rates = [warmup_cosine(s, 1.0, warmup, steps, floor) for s in range(warmup + steps + 10)]
    up, down = rates[:warmup], rates[warmup:]
    assert up == sorted(up)
    assert down == sorted(down, reverse=True)
    assert down[0] == 1.0
    assert down[-1] == pytest.approx(floor)
    assert all(map(math.isfinite, rates))
