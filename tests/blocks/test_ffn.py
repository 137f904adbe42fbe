"""The feed-forward network: two layers, the same at every position."""

import pytest
import torch
from torch.nn import functional as F

import gnomon as gn
from gnomon.blocks import FeedForward, default_width

ACTIVATIONS = {
    "relu": lambda x: x.clamp(min=0),
    "gelu": lambda x: x * 0.5 * (1 + torch.erf(x / 2**0.5)),
    "gelu_tanh": lambda x: x * 0.5 * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + torch.exp(-x)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_it_is_two_layers_around_an_activation(name):
    """act(x W1 + b1) W2 + b2 (Vaswani et al. 2017, section 3.3), the activations by their formulas."""
    ffn, x, act = FeedForward(8, 20, activation=name), torch.randn(2, 5, 8), ACTIVATIONS[name]
    want = act(x @ ffn.up.weight.T + ffn.up.bias) @ ffn.down.weight.T + ffn.down.bias
    torch.testing.assert_close(ffn(x), want)


def test_gated_it_is_a_product_of_two():
    """SwiGLU: (silu(x W_gate) * (x W_up)) W_down (Shazeer 2020), without biases as Llama has it."""
    ffn, x = FeedForward(8, 24, activation="silu", gated=True, bias=False), torch.randn(2, 5, 8)
    want = (F.silu(x @ ffn.gate.weight.T) * (x @ ffn.up.weight.T)) @ ffn.down.weight.T
    torch.testing.assert_close(ffn(x), want)
    assert all(name.endswith("weight") for name, _ in ffn.named_parameters())


@pytest.mark.parametrize("gated", [True, False])
def test_every_position_is_treated_alike_and_alone(gated):
    """Reordering tokens reorders outputs, and changing one token changes one output."""
    ffn, x = FeedForward(8, 20, gated=gated), torch.randn(1, 6, 8)
    P = torch.randperm(6)
    torch.testing.assert_close(ffn(x[:, P]), ffn(x)[:, P])
    other = x.clone()
    other[0, 3] += 1
    moved = (ffn(other) - ffn(x)).abs().amax(-1)[0] > 1e-6
    assert moved.nonzero().flatten().tolist() == [3]


@pytest.mark.parametrize("d_model", [128, 768, 4096, 100])
def test_gated_or_not_the_default_width_costs_about_as_much(d_model):
    """8/3 D for three matrices against 4 D for two, rounded up to a multiple of 8."""
    plain, gated = default_width(d_model, False), default_width(d_model, True)
    assert plain == 4 * d_model
    assert gated % 8 == 0
    assert 0 <= 3 * gated - 2 * plain < 3 * 8


def test_an_unknown_activation_names_the_nearest():
    with pytest.raises(gn.BadValue, match="unknown activation 'rleu': did you mean 'relu'"):
        FeedForward(8, 8, activation="rleu")


def test_the_clamped_gate_is_the_published_one():
    """gpt-oss: min(g, 7) sigmoid(1.702 min(g, 7)) (clamp(u, -7, 7) + 1), a function of both that needs a gate."""
    ffn, x = FeedForward(8, 20, activation="clamped_swish", gated=True), 30 * torch.randn(2, 5, 8)
    gate, up = x @ ffn.gate.weight.T + ffn.gate.bias, x @ ffn.up.weight.T + ffn.up.bias
    assert gate.max() > 7
    assert up.abs().max() > 7
    g = torch.where(gate > 7, 7.0, gate)
    want = (torch.where(up.abs() > 7, 7 * up.sign(), up) + 1) * g / (1 + torch.exp(-1.702 * g))
    torch.testing.assert_close(ffn(x), want @ ffn.down.weight.T + ffn.down.bias)
    with pytest.raises(gn.BadValue, match="set gated=True"):
        FeedForward(8, 20, activation="clamped_swish")
