"""The learning rate is a function of the step and of nothing else."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.train.schedule import ScheduleSettings, rate, warmup_cosine

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


def test_a_line_falls_by_the_same_each_step_and_wsd_stays_then_falls():
    line = ScheduleSettings(steps=104, lr=1.0, warmup=4, floor=0.1, schedule="linear")
    rates = [rate(line, step) for step in range(105)]
    assert rates[:5] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert [a - b for a, b in pairwise(rates[4:])] == pytest.approx([0.009] * 100)
    wsd = ScheduleSettings(steps=104, lr=1.0, warmup=4, floor=0.0, schedule="wsd", decay=0.2)
    rates = [rate(wsd, step) for step in range(105)]
    assert rates[3:85] == pytest.approx([1.0] * 82)
    assert rates[85:] == pytest.approx([1 - n / 20 for n in range(1, 21)])


@given(
    schedule=st.sampled_from(["cosine", "linear", "wsd"]),
    warmup=st.integers(0, 50),
    steps=st.integers(1, 200),
    floor=st.floats(0, 1),
    decay=st.floats(0.01, 1),
)
def test_every_schedule_rises_to_the_peak_and_falls_to_its_floor(schedule, warmup, steps, floor, decay):
    settings = ScheduleSettings(steps=steps, lr=1.0, warmup=warmup, floor=floor, schedule=schedule, decay=decay)
    rates = [rate(settings, step) for step in range(warmup + steps + 3)]
    assert rates[:warmup] == sorted(rates[:warmup])
    assert rates[warmup:] == sorted(rates[warmup:], reverse=True)
    assert rates[warmup] == 1.0
    assert rates[-1] == pytest.approx(floor)
