"""p-RoPE: the published rotation, written out; the slow pairs see no position."""

import numpy as np
import pytest
import torch

import gnomon as gn
from gnomon import plots
from gnomon.attention import attend, watch
from gnomon.positions.p_rope import PRoPE

PLACES = [0, 1, 3, 90, 257, 5000, 131_071]


def published(x, pos, p, base, pairing):
    """(T, d) in plain numpy: pair by pair, the complex number a + ib times e^(i m theta), for the first p d/2 pairs."""
    d, y = x.shape[-1], x.copy()
    for i in range(int(p * d // 2)):
        a, b = (i, i + d // 2) if pairing == "half" else (2 * i, 2 * i + 1)
        z = (x[:, a] + 1j * x[:, b]) * np.exp(1j * pos * base ** (-2 * i / d))
        y[:, a], y[:, b] = z.real, z.imag
    return y


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
@pytest.mark.parametrize(("p", "base"), [(0.25, 1e6), (0.75, 10_000.0), (1.0, 10_000.0)])
def test_it_turns_the_fastest_pairs_as_published(p, base, pairing):
    x = torch.randn(1, 1, len(PLACES), 16, dtype=torch.float64)
    turned = PRoPE(16, p, base, pairing)(x, PLACES)
    np.testing.assert_allclose(turned[0, 0].numpy(), published(x[0, 0].numpy(), np.array(PLACES), p, base, pairing))


def test_slow_pairs_keep_what_they_hold():
    x = torch.randn(1, 2, 3, 8)
    turned = PRoPE(8, p=0.5, pairing="interleaved")(x, [5, 6, 70_000])
    assert torch.equal(turned[..., 4:], x[..., 4:])
    assert not torch.allclose(turned[..., :4], x[..., :4])


def test_all_pairs_turning_are_rope():
    q, k = torch.randn(2, 1, 2, 5, 8)
    for got, want in zip(PRoPE(8, p=1.0).apply(q, k), gn.positions.RoPE(8).apply(q, k), strict=True):
        assert torch.equal(got, want)


def test_the_plain_causal_kernel_runs():
    q, k, v = torch.randn(3, 1, 2, 9, 8)
    with watch() as ran:
        attend(q, k, v, PRoPE(8), at := gn.Layout.dense(1, 9), at)
    assert ran == ["causal"]


def test_its_wavelengths_are_drawn_without_those_that_stand_still():
    assert plots.wavelengths("p-rope", 2048, d_head=128).facts["pairs"] == 48
    assert plots.scores(PRoPE(16), 8, d_head=64, draws=4).facts["aligned_mean"][0] == pytest.approx(1.0)


def test_it_counts_what_stands_still():
    lines = PRoPE(16).describe(64)
    assert lines[1] == "The slowest 2 of 8 pairs stand still and carry content alone."
    assert lines[-1].startswith("Twice the length: ")
    assert len(PRoPE(16).describe()) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"p": 0.0}, "above 0 and at most 1; got 0.0"),
        ({"p": 1.5}, "above 0 and at most 1; got 1.5"),
        ({"p": "most"}, "p must be a number"),
        ({"base": -1.0}, "must be above 0"),
    ],
)
def test_a_mistake_is_named_where_it_is_chosen(options, message):
    with pytest.raises(gn.BadValue, match=message):
        gn.positions.get("p-rope", **options)
    with pytest.raises(gn.BadValue, match=message):
        PRoPE(8, **options)
    with pytest.raises(gn.BadValue, match="is none"):
        PRoPE(4, p=0.25)
