"""What the norm does, measured: its place and the gradient, and layer norm beside batch norm."""

import pytest
import torch
from torch import nn

import gnomon as gn
from gnomon import plots


@pytest.mark.slow
def test_gradients_at_the_end_shrink_with_depth_for_pre_norm_not_post_norm():
    """Xiong et al. 2020, arXiv:2002.04745, theorem 1: at the last layer of order 1 / sqrt(L) against 1."""
    last = {
        (name, layers): plots.gradient_norms(name, layers, d_model=32)[-1]
        for name in ("pre", "post")
        for layers in (2, 18)
    }
    assert 2 < last["pre", 2] / last["pre", 18] < 5  # sqrt(18 / 2) is 3
    assert last["post", 2] / last["post", 18] < 1.5
    assert last["post", 18] > 2 * last["pre", 18]


def test_one_number_a_layer_the_same_for_the_same_seed():
    first, again, other = (plots.gradient_norms("sandwich", 2, 8, seed, draws=1) for seed in (0, 0, 1))
    assert first == again != other
    assert len(first) == 2
    assert min(first) > 0


def test_measuring_leaves_the_random_numbers_of_others_alone():
    state = torch.get_rng_state()
    plots.gradient_norms("pre", 1, 8, draws=1)
    plots.batch_mates()
    assert torch.equal(torch.get_rng_state(), state)


def test_gradients_are_measured_where_none_are_wanted():
    with torch.no_grad():
        assert plots.gradient_norms("pre", 1, 8, draws=1)[0] > 0


def test_a_token_is_its_own_business_under_layer_norm_and_not_under_batch_norm():
    for seed in range(3):
        seen = plots.batch_mates(seed=seed)
        assert seen.change["layer"] < 1e-6
        assert seen.change["batch"] > 0.5


def test_the_layer_norm_that_is_shown_is_the_one_of_one_token_alone():
    seen = plots.batch_mates(d_model=6, batches=2)
    token = torch.randn(1, 6, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(seen.layer[0], nn.LayerNorm(6)(token)[0].detach())


@pytest.mark.slow
@pytest.mark.parametrize(("lang", "layer"), [("en", "Layer"), ("es", "Capa"), ("pt", "Camada")])
def test_the_pictures_show_what_was_measured(lang, layer):
    picture = plots.gradient(layers=3, d_model=16, lang=lang)
    (axes,) = picture.figure.axes
    assert axes.get_xlabel() == layer
    drawn = [list(line.get_ydata()) for line in axes.lines]
    assert drawn == list(picture.facts["norms"].values())
    mates = plots.batch(d_model=8, lang=lang)
    assert [len(axes.lines) for axes in mates.figure.axes] == [8, 8]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plots.gradient(layers=1), "at least two, got 1"),
        (lambda: plots.gradient_norms("pre", 0), "at least one layer"),
        (lambda: plots.gradient_norms("pr", 1), "unknown placement 'pr': did you mean 'pre'"),
        (lambda: plots.batch(d_model=1), "take d_model >= 2"),
    ],
)
def test_what_cannot_be_measured_is_said(call, message):
    with pytest.raises(gn.BadValue, match=message):
        call()
