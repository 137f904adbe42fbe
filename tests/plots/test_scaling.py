"""Why scores are divided by sqrt(d_k), measured."""

import numpy as np
import pytest
from matplotlib.scale import InvertedLogTransform

import gnomon as gn
from gnomon import plots
from gnomon.plots.scaling import jacobian_norm


@pytest.mark.slow
def test_unscaled_scores_of_width_512_leave_softmax_without_gradient():
    """16 keys; the median Jacobian norm is below 1e-3 unscaled and about 0.30 scaled."""
    medians = plots.scaling(d_k=512, keys=16).facts["median_jacobian_norm"]
    assert medians["unscaled"] < 1e-3
    assert medians["scaled"] == pytest.approx(0.30, abs=0.01)


def test_the_norm_is_that_of_the_jacobian_written_out():
    p = np.random.default_rng(0).dirichlet(np.ones(7) * 0.2, size=200)
    written = [np.linalg.norm(np.diag(row) - np.outer(row, row)) for row in p]
    np.testing.assert_allclose(jacobian_norm(p), written, rtol=1e-9, atol=1e-12)


def test_a_saturated_softmax_has_the_gradient_of_what_is_left():
    """p = (1 - e, e): the Jacobian is e(1 - e) [[1, -1], [-1, 1]], of norm 2 e(1 - e), however small e is."""
    for e in (1e-3, 1e-9, 1e-30, 0.0):
        assert jacobian_norm(np.array([[1 - e, e]]))[0] == pytest.approx(2 * e * (1 - e), rel=1e-9)


@pytest.mark.parametrize("scaled", [True, False])
def test_scores_drawn_from_the_querys_length_are_distributed_like_real_ones(scaled):
    """Against the softmax of real products q . k of width 24, by quantiles of the Jacobian's norm."""
    rng, d_k, keys, n = np.random.default_rng(1), 24, 8, 20_000
    s = np.einsum("nd,nkd->nk", rng.standard_normal((n, d_k)), rng.standard_normal((n, keys, d_k)))
    s *= d_k**-0.5 if scaled else 1.0
    p = np.exp(s - s.max(1, keepdims=True))
    real = jacobian_norm(p / p.sum(1, keepdims=True))
    drawn = plots.saturation(d_k, keys, scaled, draws=n).jacobian
    for q in (0.1, 0.25, 0.5, 0.75, 0.9):
        assert np.quantile(drawn, q) == pytest.approx(np.quantile(real, q), rel=0.06)


def test_weights_are_sorted_shares():
    weights = plots.saturation(64, 10, draws=100).weights
    assert weights.sum() == pytest.approx(1.0)
    assert (np.diff(weights) <= 0).all()


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others():
    one, again, other = (plots.saturation(8, 4, draws=50, seed=seed).jacobian for seed in (0, 0, 1))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_nothing_can_be_drawn_from_nothing():
    with pytest.raises(gn.BadValue, match="at least 1"):
        plots.saturation(d_k=0)
    with pytest.raises(gn.BadValue, match="one key .* take keys >= 2"):
        plots.scaling(keys=1)


@pytest.mark.parametrize("rounding", [-np.inf, np.inf])
def test_its_axes_do_not_hang_on_the_last_bit_of_a_power(monkeypatch, rounding):
    exact = InvertedLogTransform.transform_non_affine
    monkeypatch.setattr(
        InvertedLogTransform, "transform_non_affine", lambda self, x: np.nextafter(exact(self, x), rounding)
    )
    plots.scaling(d_k=1, keys=2, draws=10)
