"""FIRE: the published function of a normalised distance, its gradients, and where it may not be used."""

import numpy as np
import pytest
import torch

import gnomon as gn
from gnomon.attention import attend, watch
from gnomon.plots.biases import bias_by_distance
from gnomon.positions.fire import FIRE, LEAST, WIDTH, network, straightened

PLACES = torch.tensor([[0, 3, 4, 7, 90, 256, 257, 131_071]])


def published(fire, pos):
    """The paper's equation (H, T, T) in plain numpy, one pair at a time; 0 ahead."""
    c, factor = np.abs(fire.psi.detach().numpy())
    (slope, start), last, shift = (p.detach().numpy() for p in (fire.hidden, fire.weight, fire.shift))
    found = np.zeros((len(last), len(pos), len(pos)))
    for i, m in enumerate(pos):
        for j, n in enumerate(pos[: i + 1]):
            x = np.log(c * (m - n) + 1) / (np.log(c * max(factor * fire.threshold, m) + 1) + LEAST)
            found[:, i, j] = last @ np.maximum(slope * x + start, 0) + shift
    return found


def test_the_bias_is_the_papers_formula():
    fire = FIRE(3, threshold=6.0).double()
    got = fire.bias_tensor(gn.Layout.placed(PLACES), dtype=torch.float64)[0].tril()
    np.testing.assert_allclose(got.detach().numpy(), published(fire, PLACES[0].numpy()), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("parameter", ["psi", "hidden", "weight", "shift"])
def test_gradients_are_those_of_finite_differences(parameter):
    fire = FIRE(2, threshold=6.5).double()
    at = gn.Layout.placed(PLACES[:, :6])

    def bias(numbers):
        return torch.func.functional_call(fire, {parameter: numbers}, (torch.zeros(1, 2, 6, 6).double(), at))

    assert torch.autograd.gradcheck(bias, fire.get_parameter(parameter).detach().clone().requires_grad_())


def test_one_pair_is_one_entry_without_rows():
    """Fused kernels ask for a pair of scalars, where the network runs unit by unit."""
    fire = FIRE(3, threshold=4.0)
    whole = fire.bias_tensor(gn.Layout.placed(PLACES))[0]
    for h, i, j in ((0, 5, 2), (2, 7, 0), (1, 3, 3)):
        one = fire.bias(torch.tensor(float(h)), PLACES[0, i], PLACES[0, j])
        torch.testing.assert_close(one, whole[h, i, j])


def test_units_without_a_knee_are_one_line_however_far_ahead_a_prefix_looks():
    """A token that sees ahead may meet more than all that it could look back on."""
    fire = FIRE(2, threshold=4.0)
    x = torch.tensor([0.0, 0.3, 0.99, 1.0, 2.5])
    plain = torch.relu(fire.hidden[0] * x[:, None] + fire.hidden[1]) @ fire.weight.T + fire.shift
    for top in (4, 5):
        units, last = straightened(*fire.hidden, fire.weight, fire.shift, x[:top])
        assert len(units) < WIDTH
        torch.testing.assert_close(network(x[:top], units, last), plain[:top].T)


def test_what_a_query_can_see_is_between_0_and_1_at_any_length():
    fire = FIRE(1, threshold=4.0)
    pos = torch.tensor([0, 1, 5, 2000, 131_071])
    share = fire.share(pos[:, None], pos[None, :]).tril()
    assert share.min() == 0
    assert 0.99 < share[-1, 0] <= 1
    assert share.max() <= 1


def test_before_the_threshold_only_distance_counts_and_after_it_the_position_too():
    fire = FIRE(2, threshold=16.0)
    early, later, late = (fire.bias_tensor(gn.Layout.placed([n, n + 3])).detach() for n in (0, 12, 90))
    assert torch.equal(early, later)
    assert (early - late)[0, :, 1, 0].abs().min() > 1e-3


def test_its_bias_is_absolute_so_blocks_of_queries_compute_it():
    """It is no function of distance: the kernel that keeps one number per distance may not take it."""
    fire, T, results = FIRE(2, threshold=8.0).double(), 40, []
    at, cotangent = gn.Layout.dense(1, T), torch.randn(1, 2, T, 4).double()
    start = torch.randn(3, 1, 2, T, 4).double()
    for kernel in ("dense", None):
        q, k, v = (x.clone().requires_grad_() for x in start)
        fire.zero_grad()
        with watch() as ran:
            out = attend(q, k, v, fire, at, at, kernel=kernel)
        (out * cotangent).sum().backward()
        results.append([out, q.grad, k.grad, v.grad, *(p.grad.clone() for p in fire.parameters())])
    assert ran == ["ordered"]
    for want, got in zip(*results, strict=True):
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize(
    "build",
    [
        lambda: gn.DecoderOnly(11, 16, 1, 2, position="fire", causal=False),
        lambda: gn.EncoderOnly(11, 16, 1, 2, position="fire"),
        lambda: gn.EncoderDecoder(11, 16, 1, 2, position="fire"),
    ],
)
def test_where_tokens_ahead_are_seen_it_is_refused(build):
    with pytest.raises(gn.BadValue, match="fire is for causal attention only.*choose rope, t5 or alibi"):
        build()


def test_a_picture_shows_what_the_last_query_sees():
    """Its curve is that of one query: the last, which has all the distances behind it."""
    fire = FIRE(2, threshold=4.0)
    back = np.arange(11)
    want = fire.bias_tensor(gn.Layout.dense(1, 11))[0, :, 10].flip(-1)
    np.testing.assert_allclose(bias_by_distance(fire, back), want.detach().numpy(), rtol=1e-6)


@pytest.mark.parametrize("threshold", [0.0, -1.0, float("inf"), float("nan"), "far"])
def test_a_threshold_that_is_no_number_of_tokens_is_named(threshold):
    for build in (lambda: FIRE(2, threshold), lambda: gn.positions.get("fire", threshold=threshold)):
        with pytest.raises(gn.BadValue, match="threshold"):
            build()


def test_it_says_where_interpolation_begins():
    assert "from position 512 on" in FIRE(2).describe(600)[-1]
    assert "which training on 64 tokens never saw" in FIRE(2).describe(64)[-1]
    assert "log(1 + 0.1 distance)" in FIRE(2).describe()[1]
