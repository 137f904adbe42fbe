"""Pictures of frequencies, against the formulas they show."""

import math

import numpy as np
import pytest
import torch
from matplotlib.scale import InvertedLogTransform

import gnomon as gn
from gnomon import plots
from gnomon.plots.frequencies import against_distance, distances


@pytest.mark.parametrize(("base", "trained"), [(10_000.0, 2048), (500_000.0, 8192), (10_000.0, 4)])
def test_pairs_that_complete_a_turn_are_those_whose_wavelength_fits(base, trained):
    facts = plots.wavelengths(gn.positions.get("rope", base=base), trained, d_head=128).facts
    waves = [2 * math.pi * base ** (2 * i / 128) for i in range(64)]
    assert facts["complete_a_turn"] == sum(wave <= trained for wave in waves)
    assert facts["pairs"] == 64
    assert facts["longest"] == pytest.approx(max(waves))


@pytest.mark.parametrize("rounding", [-np.inf, np.inf])
@pytest.mark.parametrize(("what", "sizes"), [("rope", {"d_head": 64}), ("rope", {"d_head": 2}), ("sinusoidal", {})])
def test_logarithmic_axes_do_not_hang_on_the_last_bit_of_a_power(monkeypatch, rounding, what, sizes):
    """Processors differ in the last bit of 10^x: axes fitted to one line may get equal limits, and matplotlib warns."""
    exact = InvertedLogTransform.transform_non_affine
    monkeypatch.setattr(
        InvertedLogTransform, "transform_non_affine", lambda self, x: np.nextafter(exact(self, x), rounding)
    )
    for trained in (1, 100, 2048):
        plots.wavelengths(what, trained, **sizes)


def test_every_wavelength_and_the_training_length_lie_within_the_axes():
    for trained in (1, 10**7):
        [axes] = plots.wavelengths("rope", trained, d_head=64).figure.axes
        low, high = axes.get_ylim()
        assert low < min(2 * math.pi, trained)
        assert high > max(2 * math.pi * 10_000 ** (62 / 64), trained)


def test_the_last_pair_of_a_sinusoid_of_512_has_a_period_of_60611_tokens():
    """The first turns every 6.28 tokens: a low dimension is a fast one."""
    facts = plots.wavelengths("sinusoidal", d_model=512).facts
    assert facts["shortest"] == pytest.approx(2 * math.pi)
    assert round(facts["longest"]) == 60611


@pytest.mark.slow
def test_a_key_equal_to_its_query_fades_as_the_mean_of_cosines():
    """E[q . R_r q] / |q|^2 over normal q is the mean of cos(r theta_i), by symmetry between the pairs."""
    facts = plots.scores("rope", 512, d_head=64, draws=600).facts
    theta = 10_000.0 ** (-2 * np.arange(32) / 64)
    want = [np.cos(r * theta).mean() for r in facts["distance"]]
    np.testing.assert_allclose(facts["aligned_mean"], want, atol=0.025)
    assert facts["aligned_mean"][0] == pytest.approx(1.0)


@pytest.mark.slow
def test_random_keys_average_zero_at_every_distance_with_the_same_spread():
    """For random q and k rotation changes nothing in distribution: mean 0, deviation 1/sqrt(C)."""
    facts = plots.scores("rope", 4096, d_head=64, draws=600).facts
    assert np.abs(facts["random_mean"]).max() < 5 / np.sqrt(600 * 64)
    np.testing.assert_allclose(facts["random_spread"], 1 / 8, rtol=0.15)


@pytest.mark.parametrize("options", [{}, {"pairing": "interleaved"}, {"fraction": 0.5}])
def test_scores_are_those_of_the_encodings_own_rotation(options):
    encoding = gn.positions.get("rope", **options).build(d_head=16)
    q, k = torch.randn(2, 3, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found = against_distance(encoding, q, k, np.array([0, 7]))
    turned, still = encoding.apply(q[None, :, None], k[None, :, None], torch.tensor([7]))
    back, _ = encoding.apply(k[None, :, None], k[None, :, None], torch.tensor([0]))
    del still
    norms = q.norm(dim=-1) * k.norm(dim=-1)
    torch.testing.assert_close(found[:, 0] * norms, (q * k).sum(-1))
    torch.testing.assert_close(found[:, 1] * norms, (turned * back).sum(-1).flatten())


def test_distances_are_whole_start_at_zero_and_end_where_asked():
    found = distances(4096)
    assert (found[0], found[1], found[-1]) == (0, 1, 4096)
    assert (np.diff(found) > 0).all()
    with pytest.raises(gn.BadValue, match="at least 1"):
        distances(0)


def test_a_training_length_is_marked_where_it_is():
    (axes,) = plots.scores("rope", 1024, draws=4, trained=256).figure.axes
    assert 256 in [line.get_xdata()[0] for line in axes.lines if len(set(line.get_xdata())) == 1]
