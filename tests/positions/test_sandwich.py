"""Sandwich: the inner product of sinusoidal vectors, and the fast kernel that takes it."""

import numpy as np
import pytest
import torch

import gnomon as gn
from gnomon.attention import attend, watch
from gnomon.positions.sandwich import SandwichBias

PLACES = torch.tensor([[0, 3, 4, 90, 256, 257, 5000, 131_071]])


def published(pos, heads, width, base):
    """(H, T, T) in plain numpy: the product of two tables, less that of a vector with itself, over each head's 8h/H."""
    angle = pos[:, None] / base ** (2 * np.arange(1, width // 2 + 1) / width)
    table = np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
    return (table @ table.T - width / 2)[None] / (8 * np.arange(1, heads + 1) / heads)[:, None, None]


@pytest.mark.parametrize(("heads", "width", "base"), [(8, 128, 10_000.0), (3, 6, 100.0)])
def test_the_bias_is_the_papers_formula(heads, width, base):
    got = SandwichBias(heads, width, base).bias_tensor(gn.Layout.placed(PLACES), dtype=torch.float64)[0]
    want = published(PLACES[0].numpy().astype(np.float64), heads, width, base)
    np.testing.assert_allclose(got.numpy(), want, atol=1e-8)


def test_far_distances_keep_their_digits_in_float32():
    """Angles rounded to float32 would be off by 8e-3 there."""
    got = SandwichBias(1).bias_tensor(gn.Layout.placed(PLACES))[0]
    want = published(PLACES[0].numpy().astype(np.float64), 1, 128, 10_000.0)
    np.testing.assert_allclose(got.numpy(), want, atol=1e-6)


def test_the_kernel_that_stores_no_square_takes_it():
    at, sandwich = gn.Layout.dense(1, 30), SandwichBias(2)
    q, k, v = torch.randn(3, 1, 2, 30, 4)
    with watch() as ran:
        out = attend(q, k, v, sandwich, at, at)
    assert ran == ["toeplitz"]
    torch.testing.assert_close(out, attend(q, k, v, sandwich, at, at, kernel="dense"))


def test_a_token_sees_itself_best_and_far_keys_less():
    bias = SandwichBias(4).bias_tensor(gn.Layout.dense(1, 300))[0, :, -1]
    assert (bias[:, -1] == 0).all()
    assert (bias[:, :-1] < 0).all()
    assert (bias[:, 0] < bias[:, 200]).all()
    assert (bias[0] <= bias[3]).all()  # the first head is the steepest


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 7}, "even number of at least 2; got 7"),
        ({"width": 2.0}, "width must be a whole number"),
        ({"base": 0}, "must be above 0"),
    ],
)
def test_a_mistake_is_named_where_it_is_chosen(options, message):
    with pytest.raises(gn.BadValue, match=message):
        gn.positions.get("sandwich", **options)
    with pytest.raises(gn.BadValue, match=message):
        SandwichBias(2, **options)
    with pytest.raises(gn.BadValue, match="n_heads must be at least 1"):
        SandwichBias(0)
