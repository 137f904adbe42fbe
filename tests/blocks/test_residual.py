"""Residual and norm: what is normalised, and which way the gradient takes."""

import pytest
import torch
from torch import nn

import gnomon as gn
from gnomon.blocks import BranchNorm, PostNorm, PreNorm, Sandwich, placement
from gnomon.norm import build_norm


def test_pre_norm_adds_to_an_untouched_stream():
    """x + f(norm(x))."""
    around, x = PreNorm(8), torch.randn(2, 3, 8) * 5 + 1
    seen = []
    y = around(x, lambda z: seen.append(z) or z * 2)
    torch.testing.assert_close(seen[0], nn.functional.layer_norm(x, (8,)))
    torch.testing.assert_close(y, x + 2 * seen[0])


def test_post_norm_normalises_the_sum():
    """norm(x + f(x)), as in the original Transformer."""
    around, x = PostNorm(8), torch.randn(2, 3, 8) * 5 + 1
    torch.testing.assert_close(around(x, lambda z: z**2), nn.functional.layer_norm(x + x**2, (8,)))


def test_a_sandwich_normalises_what_is_added():
    """x + norm'(f(norm(x))): what a sublayer adds has the size its norm gives it, however large its output."""
    around, x = Sandwich(8), torch.randn(2, 3, 8) * 5 + 1
    torch.testing.assert_close(
        around(x, lambda z: z * 1000), x + nn.functional.layer_norm(nn.functional.layer_norm(x, (8,)) * 1000, (8,))
    )


def test_a_norm_of_the_branch_normalises_what_is_added_and_nothing_else():
    """x + norm(f(x))."""
    around, x = BranchNorm(8), torch.randn(2, 3, 8) * 5 + 1
    assert [name for name, _ in around.named_parameters()] == ["norm_after.weight", "norm_after.bias"]
    torch.testing.assert_close(around(x, lambda z: z**2), x + nn.functional.layer_norm(x**2, (8,)))


@pytest.mark.parametrize("cls", [PreNorm, Sandwich, BranchNorm, PostNorm])
def test_a_scale_is_of_what_is_added_and_not_of_the_stream(cls):
    x, f = torch.randn(2, 3, 8) * 5 + 1, torch.square
    full, half = cls(8)(x, f), cls(8, residual_scale=0.5)(x, f)
    if cls is PostNorm:
        torch.testing.assert_close(half, nn.functional.layer_norm(x + x**2 / 2, (8,)))
    else:
        torch.testing.assert_close(half - x, (full - x) / 2, rtol=1e-4, atol=1e-4)


def test_the_identity_path_is_open_before_the_norm_and_shrinks_behind_it():
    """24 layers whose sublayers add noise of the stream's own size and pass no gradient.

    Before: the gradient arrives whole. Behind: each norm divides by sqrt(2), so about 2^-12 = 2.4e-4 is left.
    """
    left = {}
    for cls in (PreNorm, PostNorm):
        x = torch.randn(64, 256, dtype=torch.float64, requires_grad=True)
        y = x
        for _ in range(24):
            y = cls(256).double()(y, torch.randn_like)
        g = torch.randn_like(x)
        (grad,) = torch.autograd.grad(y, x, g)
        left[cls] = float(grad.norm() / g.norm())
    assert left[PreNorm] == 1.0
    assert left[PostNorm] == pytest.approx(2**-12, rel=0.2)


@pytest.mark.parametrize("kind", ["layernorm", "rmsnorm"])
def test_a_norm_is_per_token_so_batch_mates_and_neighbours_do_not_matter(kind):
    """Unlike batch norm."""
    norm, x = build_norm(kind, 8).train(), torch.randn(3, 4, 8)
    torch.testing.assert_close(norm(x)[1, 2], norm(x[1:2, 2:3])[0, 0])
    other = x.clone()
    other[0] *= 100
    assert torch.equal(norm(other)[1:], norm(x)[1:])
    batch = nn.BatchNorm1d(8)
    assert not torch.equal(batch(other.flatten(0, 1))[4:], batch(x.flatten(0, 1))[4:])  # this test can see a mixture


def test_norms_are_their_formulas():
    x = torch.randn(5, 8) * 3 + 2
    centred = x - x.mean(-1, keepdim=True)
    torch.testing.assert_close(
        build_norm("layernorm", 8)(x), centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    )
    torch.testing.assert_close(build_norm("rmsnorm", 8)(x), x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt())


def test_a_norm_that_adds_one_rounds_once():
    """Gemma keeps w near 0 and multiplies by 1 + w in float32, whatever the dtype of the weights."""
    norm, x = build_norm("rmsnorm_plus_one", 64, 1e-6), torch.randn(5, 64)
    nn.init.normal_(norm.weight, std=0.1)
    want = x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * (1 + norm.weight)
    torch.testing.assert_close(norm(x), want)
    narrow = norm.bfloat16()
    y = x.bfloat16()
    exact = y.float() / (y.float().square().mean(-1, keepdim=True) + 1e-6).sqrt() * (1 + norm.weight.float())
    assert torch.equal(narrow(y), exact.bfloat16())


@pytest.mark.parametrize("cls", [PreNorm, PostNorm])
def test_dropout_acts_on_the_branch_and_never_on_the_stream(cls):
    around, x = cls(8).train(), torch.randn(2, 3, 8)
    around.drop.p = 1.0
    y = around(x, lambda z: z + 7)
    torch.testing.assert_close(y, x if cls is PreNorm else nn.functional.layer_norm(x, (8,)))


def test_unknown_names_name_the_nearest():
    with pytest.raises(gn.BadValue, match="unknown norm placement 'prenorm': did you mean 'pre'"):
        placement("prenorm")
    with pytest.raises(gn.BadValue, match="unknown norm 'layer_norm': did you mean 'layernorm'"):
        build_norm("layer_norm", 8)
