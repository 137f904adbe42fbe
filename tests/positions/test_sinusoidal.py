"""Sinusoidal positions: published values, three tables, any width, any length."""

import math

import numpy as np
import pytest
import torch

import gnomon as gn
from gnomon.positions import Sinusoidal, sinusoidal_table

TABLES = ("interleaved", "concatenated", "tensor2tensor")


def test_the_table_is_float64_and_begins_as_published():
    """(100, 512); row 0 is 0, 1, 0, 1 ...; row 1 starts sin 1, cos 1, sin w, cos w with w = 10000^(-2/512)."""
    table = sinusoidal_table(100, 512)
    assert (table.shape, table.dtype) == ((100, 512), np.float64)
    assert np.array_equal(table[0], np.tile([0.0, 1.0], 256))
    np.testing.assert_allclose(table[1, :4], [0.84147098, 0.54030231, 0.82185619, 0.56969501], atol=5e-9)


def test_every_row_has_the_norm_of_half_the_width():
    """sin^2 + cos^2 = 1 for each of the 256 pairs, so every norm is 16."""
    np.testing.assert_allclose(np.linalg.norm(sinusoidal_table(100, 512), axis=1), 16.0, rtol=1e-14)


@pytest.mark.parametrize("d_model", [4, 7, 64])
def test_rows_are_unique_and_values_lie_between_minus_one_and_one(d_model):
    """At any width of 4 or more."""
    table = torch.from_numpy(sinusoidal_table(2000, d_model))
    assert table.abs().max() <= 1.0
    assert torch.pdist(table).min() > 1e-4


def test_at_width_two_positions_nearly_meet():
    """710 tokens are 113 turns but for 6e-5 radians (710/113 is nearly 2 pi)."""
    table = sinusoidal_table(725, 2)
    assert 1e-6 < np.abs(table[14] - table[724]).max() < 1e-4


@pytest.mark.parametrize("k", [1, 7, 100])
def test_a_shift_is_one_fixed_linear_map(k):
    """PE(p + k) = PE(p) R_k, one rotation by k w_i per pair, the same for every p (Vaswani et al., section 3.5)."""
    table, R = sinusoidal_table(300, 16), np.zeros((16, 16))
    for i in range(8):
        a = k * 10_000.0 ** (-2 * i / 16)
        R[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]
    np.testing.assert_allclose(table[:-k] @ R, table[k:], atol=1e-12)


@pytest.mark.parametrize("d_model", [512, 6, 5])
def test_the_module_adds_the_table_to_float32_rounding(d_model):
    """Called alone, the layer adds positions 0..T-1."""
    layer, x = Sinusoidal(d_model), torch.zeros(2, 40, d_model)
    np.testing.assert_allclose(layer(x)[1].numpy(), sinusoidal_table(40, d_model), atol=1e-7)


def test_the_layer_adds_any_positions():
    """layer(x, at)."""
    layer, at = Sinusoidal(8), gn.Layout.packed([[3, 2]])
    table = torch.from_numpy(sinusoidal_table(3, 8)).float()
    torch.testing.assert_close(layer(torch.zeros(1, 5, 8), at)[0], table[[0, 1, 2, 0, 1]])


def test_it_has_no_parameters_no_buffers_and_nothing_to_save():
    layer = Sinusoidal(64)
    layer(torch.zeros(1, 100, 64))
    assert list(layer.parameters()) == list(layer.buffers()) == []
    assert not layer.state_dict()


def test_it_follows_the_device_of_its_input():
    """On the one device that every machine has beside the CPU."""
    assert Sinusoidal(8)(torch.zeros(1, 3, 8, device="meta")).device.type == "meta"


def test_positions_may_be_fractions():
    half = gn.Layout.from_hf(position_ids=torch.tensor([[0.5, 1.5]]))
    want = [math.sin(0.5), math.cos(0.5)], [math.sin(1.5), math.cos(1.5)]
    torch.testing.assert_close(Sinusoidal(2)(torch.zeros(1, 2, 2), half)[0], torch.tensor(want))


def test_no_length_is_too_long():
    """Never an error about a maximum length, and never fewer rows than tokens."""
    assert Sinusoidal(4)(torch.zeros(1, 9000, 4)).shape == (1, 9000, 4)
    far = torch.tensor([[10**6, 2**31]])
    at = gn.Layout.from_hf(position_ids=far)
    got = Sinusoidal(4).vectors(at, torch.float64)[0]
    w = [1.0, 0.01]
    want = [[f(p * x) for x in w for f in (math.sin, math.cos)] for p in far[0].tolist()]
    torch.testing.assert_close(got, torch.tensor(want, dtype=torch.float64))


@pytest.mark.parametrize(
    ("d_model", "position", "row"),
    [  # worked out from the formula in float64
        (7, 3, [0.14112001, -0.98999250, 0.21423219, 0.97678276, 0.01553780, 0.99987928, 0.00111828]),
        (5, 2, [0.90929743, -0.41614684, 0.05021660, 0.99873835, 0.00126191]),
        (1, 2, [0.90929743]),
    ],
)
def test_an_odd_width_ends_with_a_sine(d_model, position, row):
    np.testing.assert_allclose(sinusoidal_table(position + 1, d_model)[position], row, atol=5e-9)


def test_both_channels_of_a_pair_turn_at_one_frequency():
    """The exponent counts pairs: 2 i / d for channels 2i and 2i + 1, not one frequency per channel."""
    row = [0.90929743, -0.41614684, 0.09269850, 0.99569422, 0.00430886, 0.99999072]
    np.testing.assert_allclose(sinusoidal_table(3, 6)[2], row, atol=5e-9)
    pairs = sinusoidal_table(500, 32).reshape(500, 16, 2)
    np.testing.assert_allclose((pairs**2).sum(-1), 1.0, atol=1e-14)


@pytest.mark.parametrize(
    ("table", "row"),
    [  # three published layouts at width 8, position 2; the third divides by d/2 - 1
        ("interleaved", [0.90929743, -0.41614684, 0.19866933, 0.98006658, 0.01999867, 0.99980001, 0.002, 0.999998]),
        ("concatenated", [0.90929743, 0.19866933, 0.01999867, 0.002, -0.41614684, 0.98006658, 0.99980001, 0.999998]),
        (
            "tensor2tensor",
            [0.90929743, 0.09269850, 0.00430886, 0.0002, -0.41614684, 0.99569422, 0.99999072, 0.99999998],
        ),
    ],
)
def test_three_tables_are_three_tables(table, row):
    np.testing.assert_allclose(sinusoidal_table(3, 8, table=table)[2], row, atol=6e-9)


def test_concatenated_is_interleaved_in_another_order_of_channels():
    one, other = (sinusoidal_table(9, 10, table=table) for table in ("interleaved", "concatenated"))
    assert np.array_equal(np.concatenate([one[:, 0::2], one[:, 1::2]], 1), other)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("d_model", [1, 2, 3, 8])
def test_every_table_has_every_width(table, d_model):
    """The third must not divide by zero at width 2, where it is [sin p, cos p]."""
    found = sinusoidal_table(5, d_model, table=table)
    assert found.shape == (5, d_model)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[:, 0], np.sin(np.arange(5)), atol=1e-15)


def test_the_third_table_is_that_of_whisper():
    whisper = pytest.importorskip("transformers.models.whisper.modeling_whisper")
    want = whisper.sinusoids(50, 16).numpy()
    np.testing.assert_allclose(sinusoidal_table(50, 16, table="tensor2tensor"), want, atol=1e-5)


def test_the_first_table_is_that_of_x_transformers():
    x_transformers = pytest.importorskip("x_transformers.x_transformers")
    theirs = x_transformers.ScaledSinusoidalEmbedding(32)
    theirs.scale.data.fill_(1.0)
    want = theirs(torch.zeros(1, 40, 32)).detach().numpy()  # all sines, then all cosines
    np.testing.assert_allclose(sinusoidal_table(40, 32, table="concatenated"), want, atol=1e-5)


def test_a_base_sets_the_slowest_wavelength():
    w = Sinusoidal(10, base=50.0).frequencies()
    assert w[0] == 1.0
    assert w[-1] == pytest.approx(50.0 ** (-8 / 10))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"d_model": 0}, "d_model must be at least 1"),
        ({"d_model": 8, "table": "interleave"}, "unknown sinusoidal table 'interleave': did you mean 'interleaved'"),
    ],
)
def test_a_mistake_is_named(arguments, message):
    with pytest.raises(gn.BadValue, match=message):
        Sinusoidal(**arguments)


def test_an_offset_is_the_row_of_the_first_position():
    """M2M-100 begins in row 2."""
    late, table = Sinusoidal(16, table="tensor2tensor", offset=2), sinusoidal_table(7, 16, table="tensor2tensor")
    vectors = late.vectors(gn.Layout.dense(1, 5), torch.float64)[0]
    torch.testing.assert_close(vectors, torch.from_numpy(table[2:]), rtol=0, atol=1e-14)
    with pytest.raises(gn.BadValue, match="offset is the row of position 0"):
        Sinusoidal(16, offset=-1)
