"""Axial sinusoids: a sinusoidal vector for each axis, side by side."""

import numpy as np
import pytest
import torch

import gnomon as gn
from gnomon.positions.axial_sinusoidal import AxialSinusoidal


def mae(D, h, w):
    """(h w, D) as He et al. write it: sines and cosines of one axis, then of the other, 10000^(-i/(D/4))."""
    omega = 1 / 10000 ** (np.arange(D // 4) / (D / 4))
    y, x = (c.reshape(-1, 1) * omega for c in np.meshgrid(np.arange(h), np.arange(w), indexing="ij"))
    return np.concatenate([np.sin(y), np.cos(y), np.sin(x), np.cos(x)], 1)


def detr(D, h, w):
    """(h w, D) as Carion et al. write it: sine and cosine in turn, rows first."""
    dim = 10000.0 ** (2 * (np.arange(D // 2) // 2) / (D // 2))
    y, x = (c.reshape(-1, 1) / dim for c in np.meshgrid(np.arange(h), np.arange(w), indexing="ij"))
    one = [np.stack([np.sin(a[:, 0::2]), np.cos(a[:, 1::2])], 2).reshape(h * w, -1) for a in (y, x)]
    return np.concatenate(one, 1)


@pytest.mark.parametrize(("table", "formula"), [("concatenated", mae), ("interleaved", detr)])
def test_it_is_the_table_of_the_papers(table, formula):
    vectors = AxialSinusoidal(16, table=table).vectors(gn.Layout.grid(3, 5), torch.float64)
    np.testing.assert_allclose(vectors[0].numpy(), formula(16, 3, 5), atol=1e-12)


def test_each_axis_is_the_sinusoidal_encoding_of_its_coordinate():
    at, line = gn.Layout.grid(2, 3, 2), gn.positions.Sinusoidal(3, table="concatenated")
    vectors = AxialSinusoidal(9, axes=3).vectors(at)
    for axis in range(3):
        assert torch.equal(vectors[0, :, 3 * axis : 3 * axis + 3], line.of(at.coords[0, :, axis]))


@pytest.mark.parametrize("width", [2, 5, 7])
def test_any_width_is_shared_out(width):
    assert AxialSinusoidal(width).vectors(gn.Layout.grid(2, 2)).shape == (1, 4, width)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"axes": -2}, "from 1 to 16"),
        ({"axes": 9}, "at least axes=9"),
        ({"base": 0.0}, "must be above 0"),
        ({"table": "tensor3tensor"}, "unknown table"),
    ],
)
def test_a_mistake_is_named(options, message):
    with pytest.raises(gn.BadValue, match=message):
        gn.positions.get("axial-sinusoidal", **options).build(d_model=8)


def test_a_model_tells_cells_of_one_column_apart():
    model = gn.EncoderOnly(5, 16, 1, 2, position="axial-sinusoidal").eval()
    states = model.encode(torch.zeros(1, 6, dtype=torch.long), gn.Layout.grid(3, 2)).states[0]
    assert len({tuple(row) for row in states.round(decimals=5).tolist()}) == 6
