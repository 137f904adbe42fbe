"""Axial RoPE: rows turn some pairs, columns the others."""

import math

import numpy as np
import pytest
import torch

import gnomon as gn
from gnomon.positions.axial_rope import AxialRoPE

GRID = gn.Layout.grid(3, 4)


def published(x, coords, axes, base, pairing):
    """(T, d) in plain numpy, pair by pair: a + ib times e^(i c theta), c the coordinate of the pair's own axis."""
    d, y, share = x.shape[-1], x.copy(), x.shape[-1] // (2 * axes)
    for pair in range(d // 2):
        axis, i = divmod(pair, share)
        a, b = (pair, pair + d // 2) if pairing == "half" else (2 * pair, 2 * pair + 1)
        z = (x[:, a] + 1j * x[:, b]) * np.exp(1j * coords[:, axis] * base ** (-2 * i * axes / d))
        y[:, a], y[:, b] = z.real, z.imag
    return y


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
@pytest.mark.parametrize(("axes", "base", "sizes"), [(2, 100.0, (3, 4)), (3, 10_000.0, (2, 3, 2))])
def test_it_turns_each_axis_as_published(axes, base, sizes, pairing):
    at = gn.Layout.grid(*sizes)
    x = torch.randn(1, 1, 12, 12, dtype=torch.float64)
    turned = AxialRoPE(12, axes, base, pairing)(x, at)
    np.testing.assert_allclose(
        turned[0, 0].numpy(), published(x[0, 0].numpy(), at.coords[0].numpy(), axes, base, pairing), atol=1e-12
    )


def test_scores_see_only_the_step_from_cell_to_cell():
    """Both cells moved by the same rows and columns keep their score; moved by different ones they do not."""
    axial, (q, k) = AxialRoPE(16), torch.randn(2, 1, 1, 1, 16, dtype=torch.float64)

    def score(a, b):
        places = (gn.Layout.dense(1, 1).at_coords(torch.tensor([cell])) for cell in (a, b))
        q_at, k_at = places
        return (axial(q, q_at) * axial(k, k_at)).sum()

    torch.testing.assert_close(score([5, 2], [1, 7]), score([105, 32], [101, 37]))
    assert (score([5, 2], [1, 7]) - score([6, 2], [1, 7])).abs() > 1e-3


def test_a_class_token_is_not_turned():
    x = torch.randn(1, 2, 13, 8)
    assert torch.equal(AxialRoPE(8)(x, gn.Layout.grid(3, 4, before=1))[:, :, 0], x[:, :, 0])


def test_its_numbers_in_a_batch_and_a_slice_are_those_of_the_whole():
    axial, x = AxialRoPE(8), torch.randn(2, 2, 12, 8)
    whole = axial(x, gn.Layout.grid(3, 4, batch=2))
    assert torch.equal(axial(x[1:, :, 5:9], GRID.tokens(slice(5, 9))), whole[1:, :, 5:9])
    assert torch.equal(axial.apply(x, x, GRID)[0], whole)


@pytest.mark.slow
def test_it_is_dinov3s_on_pictures_of_one_extent():
    from transformers import DINOv3ViTConfig
    from transformers.models.dinov3_vit import modeling_dinov3_vit as theirs

    config = DINOv3ViTConfig(hidden_size=64, num_attention_heads=4, image_size=48, patch_size=16, rope_theta=100.0)
    cos, sin = theirs.DINOv3ViTRopePositionEmbedding(config).eval()(torch.zeros(1, 3, 48, 80))
    q, k = torch.randn(2, 1, 4, 16, 16)
    want = theirs.apply_rotary_pos_emb(q, k, cos, sin)
    got = AxialRoPE(16).apply(q, k, gn.Layout.grid(3, 5, before=1, extent=2 * math.pi))
    for mine, other in zip(got, want, strict=True):
        torch.testing.assert_close(mine, other, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("options", "d_head", "message"),
    [
        ({"axes": 0}, 8, "from 1 to 16.*got 0"),
        ({"axes": 3}, 8, "multiple of 6, got 8"),
        ({"axes": "two"}, 8, "axes must be a whole number"),
        ({"base": -1.0}, 8, "must be above 0"),
        ({}, 6, "multiple of 4, got 6"),
    ],
)
def test_a_mistake_is_named(options, d_head, message):
    with pytest.raises(gn.BadValue, match=message):
        gn.positions.get("axial-rope", **options).build(d_head=d_head)


def test_another_number_of_axes_is_named():
    with pytest.raises(gn.BadValue, match="along 2 axes, but 3 are read"):
        AxialRoPE(12, axes=3)(torch.zeros(1, 1, 12, 12), GRID)


def test_an_encoder_reads_a_board_and_not_only_its_cells_in_a_line():
    """The same cells as another shape of board give other vectors; moved rows give the same ones as their picture."""
    torch.manual_seed(0)
    model = gn.EncoderOnly(5, 16, 2, 2, position="axial-rope", init_std=0.3).eval()
    ids = torch.randint(5, (1, 12))
    wide, tall = (model.encode(ids, at).states for at in (GRID, gn.Layout.grid(4, 3)))
    assert (wide - tall).abs().max() > 1e-3
    order = torch.tensor([[4, 5, 6, 7, 0, 1, 2, 3, 8, 9, 10, 11]])  # rows told in another order, at their own places
    moved = model.encode(ids[:, order[0]], GRID.slots(order)).states
    torch.testing.assert_close(moved, wide[:, order[0]], atol=1e-5, rtol=1e-5)
