"""Processors: which tokens survive, with which probabilities, and that no row knows of another."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.errors import BadValue
from gnomon.generate.logits import cumulative, forbid, inverse_cdf, min_p, temperature, top_k, top_p


def logits_of(*probabilities: float) -> torch.Tensor:
    return torch.tensor([probabilities]).log()


def kept(logits: torch.Tensor) -> list[list[int]]:
    return [row.isfinite().nonzero().flatten().tolist() for row in logits]


rows = st.lists(st.lists(st.integers(-20, 20), min_size=5, max_size=5), min_size=1, max_size=4).map(
    lambda values: torch.tensor(values, dtype=torch.float32) / 4  # quarters: ties are frequent
)
PROCESSORS = [
    pytest.param(temperature, st.sampled_from([0.0, 1e-30, 0.5, 1.0, 3.0]), id="temperature"),
    pytest.param(top_k, st.integers(1, 9), id="top_k"),
    pytest.param(top_p, st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), id="top_p"),
    pytest.param(min_p, st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), id="min_p"),
]


# ------------------------------------------------------------------ what each keeps


@pytest.mark.parametrize(("p", "expected"), [(0.75, 2), (0.5, 1), (0.76, 3), (0.0, 1), (1.0, 4), (0.875, 3)])
def test_top_p_keeps_the_smallest_set_that_reaches_p(p, expected):
    assert kept(top_p(logits_of(0.5, 0.25, 0.125, 0.125), p)) == [list(range(expected))]


@settings(max_examples=60, deadline=None)
@given(st.permutations([0, 1, 2, 3]), st.sampled_from([0.0, 0.5, 0.51, 0.75, 0.76, 1.0]))
def test_top_p_keeps_the_same_set_in_any_order(order, p):
    values = torch.tensor([0.5, 0.25, 0.15, 0.1]).log()
    moved = kept(top_p(values[list(order)][None], p))[0]
    assert sorted(order[i] for i in moved) == kept(top_p(values[None], p))[0]


@settings(max_examples=60, deadline=None)
@given(rows, st.floats(0, 1))
def test_top_p_reaches_p_and_would_not_without_its_last_token(logits, p):
    probabilities = logits.double().softmax(-1)
    for row, ids in zip(probabilities, kept(top_p(logits, p)), strict=True):
        mass = sorted(row[ids].tolist(), reverse=True)
        assert sum(mass) >= p - 1e-6
        assert len(mass) == 1 or sum(mass[:-1]) < p + 1e-6
        assert set(ids) == set(row.argsort(descending=True, stable=True)[: len(ids)].tolist())


def test_top_p_of_one_keeps_even_what_rounding_would_lose():
    assert len(kept(top_p(torch.tensor([[0.0, -40.0, -90.0]]), 1.0))[0]) == 3


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 1000])
def test_top_k_keeps_exactly_k_and_the_lower_ids_of_a_tie(k):
    assert kept(top_k(torch.tensor([[0.0, 1.0, 1.0, 0.0, 1.0]]), k)) == [sorted([1, 2, 4, 0, 3][:k])]


@pytest.mark.parametrize(("p", "expected"), [(0.0, 4), (0.19, 4), (0.25, 3), (0.5, 2), (0.51, 1), (1.0, 1)])
def test_min_p_keeps_what_is_p_times_as_probable_as_the_best(p, expected):
    assert kept(min_p(logits_of(0.5, 0.25, 0.15, 0.1), p)) == [list(range(expected))]


def test_forbid_takes_tokens_out_and_leaves_the_rest_as_it_was():
    logits = torch.arange(8.0).view(2, 4)
    out = forbid(logits, torch.tensor([0, 3]))
    assert kept(out) == [[1, 2], [1, 2]]
    assert torch.equal(out[:, 1:3], logits[:, 1:3])
    assert torch.equal(forbid(logits, torch.tensor([], dtype=torch.long)), logits)


# ------------------------------------------------------------------ temperature


@settings(max_examples=60, deadline=None)
@given(rows, st.floats(0.1, 10))
def test_temperature_divides_the_logits(logits, t):
    torch.testing.assert_close(temperature(logits, t).softmax(-1), (logits / t).softmax(-1))


@pytest.mark.parametrize("t", [0.0, 1e-10, 1e-30, 1e-46, 5e-324])
def test_a_temperature_of_zero_or_nearly_is_greedy_and_finite_where_it_should_be(t):
    out = temperature(torch.tensor([[1.0, 2.0], [80.0, -80.0], [1e30, -1e30]]), t).softmax(-1)
    assert out.tolist() == [[0, 1], [1, 0], [1, 0]]


def test_a_row_at_temperature_zero_leaves_its_batch_mates_alone():
    logits = torch.tensor([[1.0, 2.0], [1.0, 2.0]])
    both = temperature(logits, [0.0, 1.0]).softmax(-1)
    assert both[0].tolist() == [0, 1]
    torch.testing.assert_close(both[1], logits[1].softmax(-1))


def test_temperature_zero_takes_the_lower_id_of_a_tie():
    assert kept(temperature(torch.tensor([[0.0, 3.0, 3.0]]), 0.0)) == [[1]]


# ------------------------------------------------------------------ all of them


@pytest.mark.parametrize(("process", "settings_"), PROCESSORS)
@settings(max_examples=60, deadline=None)
@given(data=st.data(), logits=rows)
def test_every_row_keeps_its_best_token_and_ties_go_to_the_lower_id(process, settings_, data, logits):
    out = process(logits, data.draw(settings_))
    assert not out.isnan().any()
    assert torch.equal(out.argmax(-1), logits.argmax(-1))
    assert out.amax(-1).isfinite().all()


@pytest.mark.parametrize(("process", "settings_"), PROCESSORS)
@settings(max_examples=60, deadline=None)
@given(data=st.data(), logits=rows)
def test_rows_are_processed_as_if_alone_each_with_its_own_setting(process, settings_, data, logits):
    values = [data.draw(settings_) for _ in logits]
    alone = torch.cat([process(row[None], value) for row, value in zip(logits, values, strict=True)])
    assert torch.equal(process(logits, values), alone)
    assert torch.equal(process(logits, torch.tensor(values)), alone)


@pytest.mark.parametrize(("process", "settings_"), PROCESSORS)
@settings(max_examples=60, deadline=None)
@given(data=st.data(), logits=rows)
def test_what_is_forbidden_stays_forbidden_and_the_input_as_it_was(process, settings_, data, logits):
    blocked = forbid(logits, torch.tensor([2]))
    before = blocked.clone()
    assert process(blocked, data.draw(settings_))[:, 2].tolist() == [-math.inf] * len(logits)
    assert torch.equal(blocked, before)


@pytest.mark.parametrize(
    ("process", "value", "says"),
    [
        (temperature, -1.0, "temperature must be at least 0, got -1.0"),
        (temperature, math.inf, "temperature must be at least 0"),
        (temperature, math.nan, "temperature must be at least 0"),
        (temperature, [1.0, -1.0], "temperature must be at least 0"),
        (temperature, [1.0, 1.0, 1.0], "one for each of the 2 rows; got 3"),
        (top_k, 0, "top_k must be at least 1, got 0"),
        (top_k, 2.5, "top_k counts tokens, so it is a whole number"),
        (top_p, 1.5, "top_p must be between 0 and 1, got 1.5"),
        (top_p, -0.1, "top_p must be between 0 and 1"),
        (min_p, 1.01, "min_p must be between 0 and 1"),
        (min_p, math.nan, "min_p must be between 0 and 1"),
    ],
)
def test_a_setting_that_cannot_be_right_is_refused(process, value, says):
    with pytest.raises(BadValue) as error:
        process(torch.zeros(2, 4), value)
    assert says in str(error.value)


# ------------------------------------------------------------------ drawing


def test_the_inverse_of_the_distribution_starts_a_token_where_the_one_before_it_ends():
    logits = logits_of(0.5, 0.25, 0.0, 0.25).expand(7, -1)
    u = torch.tensor([0.0, 0.499, 0.5, 0.749, 0.75, 0.999, 1 - 2**-53], dtype=torch.float64)
    assert inverse_cdf(logits, u).tolist() == [0, 0, 1, 1, 3, 3, 3]


@settings(max_examples=60, deadline=None)
@given(rows, st.floats(0, 1, exclude_max=True))
def test_a_token_that_was_taken_out_is_never_drawn(logits, u):
    blocked = forbid(logits, torch.tensor([0, 2, 4]))
    assert set(inverse_cdf(blocked, torch.full((len(logits),), u, dtype=torch.float64)).tolist()) <= {1, 3}


def test_running_sums_do_not_lose_what_is_small():
    assert cumulative(torch.tensor([[1.0, *[2.0**-40] * 1024]]))[0, -1].item() == 1 + 2.0**-30
