"""KERPLE: both published curves, their gradients, and the fast kernel that takes them."""

import numpy as np
import pytest
import torch

import gnomon as gn
from gnomon.attention import attend, watch
from gnomon.positions.kerple import Kerple

FORMS = ("logarithmic", "power")
PLACES = torch.tensor([[0, 3, 4, 90, 256, 257, 5000, 131_071]])


def published(form, r1, r2, pos):
    """The paper's equations (H, T, T) in plain numpy."""
    gap = np.abs(pos[:, None] - pos[None, :]).astype(np.float64)
    curve = {
        "logarithmic": lambda a, b: -a * np.log(1 + b * gap),
        "power": lambda a, b: -a * gap**b,
    }[form]
    return np.stack([curve(a, b) for a, b in zip(r1, r2, strict=True)])


@pytest.mark.parametrize("form", FORMS)
def test_the_bias_is_the_papers_formula(form):
    kerple = Kerple(5, form).double()
    r1, r2 = kerple.rates(torch.float64).detach().numpy()
    got = kerple.bias_tensor(gn.Layout.placed(PLACES), dtype=torch.float64)[0]
    np.testing.assert_allclose(got.detach().numpy(), published(form, r1, r2, PLACES[0].numpy()), rtol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_gradients_are_those_of_finite_differences(form):
    """At distance 0 too, where the power's derivative by its exponent is 0 times the logarithm of 0."""
    kerple = Kerple(3, form).double()
    at = gn.Layout.placed(PLACES[:, :5])

    def bias(weight):
        return torch.func.functional_call(kerple, {"weight": weight}, (torch.zeros(1, 3, 5, 5).double(), at))

    assert torch.autograd.gradcheck(bias, kerple.weight.detach().clone().requires_grad_())


@pytest.mark.parametrize("form", FORMS)
def test_whatever_is_learned_rates_stay_where_the_paper_has_them(form):
    kerple = Kerple(2, form)
    with torch.no_grad():
        kerple.weight.copy_(torch.tensor([[-9.0, 9.0], [-9.0, 9.0]]))
    r1, r2 = kerple.rates().detach()
    assert (r1 > 0).all()
    assert (r2 > 0).all()
    assert form == "logarithmic" or (r2 <= 2).all()


def test_rates_start_in_the_authors_ranges():
    """r1 uniform in (0, 2) and r2 in (0, 1), clamped at 0.01; in the power form the other way round."""
    for form, tops in (("logarithmic", (2, 1)), ("power", (1, 2))):
        for rate, top in zip(Kerple(4000, form).rates().detach(), tops, strict=True):
            assert 0.0099 < rate.min() < 0.02 * top + 0.01
            assert 0.98 * top < rate.max() <= top
            assert float(rate.mean()) == pytest.approx(top / 2, rel=0.05)


def test_the_power_form_with_exponent_1_is_alibi():
    kerple, alibi = Kerple(4, "power"), gn.positions.get("alibi").build(n_heads=4)
    with torch.no_grad():
        kerple.weight.copy_(torch.stack([torch.tensor(alibi.slopes()).log(), torch.zeros(4)]))
    at = gn.Layout.placed(PLACES)
    torch.testing.assert_close(kerple.bias_tensor(at), alibi.bias_tensor(at))


@pytest.mark.parametrize("form", FORMS)
def test_its_gradient_comes_through_the_kernel_that_stores_no_square(form):
    """One number per distance and head, forward and backward: what attention saves grows with T, not with T * T."""
    kerple, T, results, saved = Kerple(2, form).double(), 40, [], []
    at, cotangent = gn.Layout.dense(1, T), torch.randn(1, 2, T, 4).double()
    start = torch.randn(3, 1, 2, T, 4).double()
    for kernel in ("dense", None):
        q, k, v = (x.clone().requires_grad_() for x in start)
        kerple.zero_grad()
        with (
            watch() as ran,
            torch.autograd.graph.saved_tensors_hooks(lambda x: saved.append(x.shape) or x, lambda x: x),
        ):
            saved.clear()
            out = attend(q, k, v, kerple, at, at, kernel=kernel)
        (out * cotangent).sum().backward()
        results.append([out, q.grad, k.grad, v.grad, kerple.weight.grad.clone()])
    assert ran == ["toeplitz"]
    assert max(shape.numel() for shape in saved) < T * T
    for want, got in zip(*results, strict=True):
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"form": "logarithm"}, "unknown form of kerple 'logarithm': did you mean 'logarithmic'"),
        ({"form": 3}, "form must be"),
        ({"n_heads": 0}, "n_heads must be at least 1, got 0"),
    ],
)
def test_a_mistake_is_named(options, message):
    with pytest.raises(gn.BadValue, match=message):
        Kerple(**{"n_heads": 2, **options})
    if "form" in options:
        with pytest.raises(gn.BadValue, match=message):
            gn.positions.get("kerple", **options)


def test_it_says_how_its_heads_fade():
    kerple = Kerple(2)
    with torch.no_grad():
        kerple.weight.copy_(torch.tensor([[1.0, 2.0], [0.5, 0.25]]).log())
    first, last = kerple.describe(50)
    assert first == "2 heads fade by r1 log(1 + r2 distance): r1 from 1 to 2, r2 from 0.25 to 0.5."
    assert f"{np.log(1 + 0.5 * 100):.3g} logits down" in last
