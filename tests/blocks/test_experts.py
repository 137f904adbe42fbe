"""Mixtures of experts: what a token becomes is the definition's weighted sum, at the price of the experts it takes."""

import pytest
import torch
from torch import nn

import gnomon as gn
from gnomon.blocks import Experts, FeedForward, MixtureOfExperts
from gnomon.models.plan import plan

D, F = 8, 12
MIXTURES = [
    Experts(5),
    Experts(5, 3, normalised=False, router_bias=True),
    Experts(4, 1, shared=6),
    Experts(4, 4, d_ff=7, shared=6, shared_gate=True),
]


def mixture(experts):
    """With numbers that tell experts apart, the router's too."""
    layer = MixtureOfExperts(D, experts, F, lambda width: FeedForward(D, width, activation="silu", gated=True))
    for weight in layer.parameters():
        nn.init.normal_(weight, std=0.7)
    return layer


def by_definition(layer, x):
    """Every expert of every token, and a weight of 0 for those that it does not take."""
    p = torch.softmax(layer.router(x), -1)
    largest = p.topk(layer.top_k, -1).indices
    p = p * torch.zeros_like(p).scatter(-1, largest, 1.0)
    p = p / p.sum(-1, keepdim=True) if layer.normalised else p
    y = sum(p[..., e, None] * expert(x) for e, expert in enumerate(layer.experts))
    if layer.shared is None:
        return y
    return y + layer.shared(x) * (1 if layer.shared_gate is None else torch.sigmoid(layer.shared_gate(x)))


@pytest.mark.parametrize("experts", MIXTURES, ids=str)
def test_it_is_the_weighted_sum_of_the_experts_that_a_token_takes(experts):
    layer, x = mixture(experts), torch.randn(2, 7, D, requires_grad=True)
    answers = []
    for f in (layer, lambda x: by_definition(layer, x)):
        y = f(x)
        y.square().sum().backward()
        answers.append([y.detach(), x.grad.clone(), *(p.grad.clone() for p in layer.parameters())])
        x.grad = None
        layer.zero_grad()
    for ours, want in zip(*answers, strict=True):
        torch.testing.assert_close(ours, want, rtol=1e-4, atol=1e-4)


def rows_computed(layer, x):
    """How many tokens each expert is given, None for one that is not called."""
    rows = [None] * len(layer.experts)
    for e, expert in enumerate(layer.experts):
        expert.register_forward_pre_hook(lambda _, args, e=e: rows.__setitem__(e, len(args[0])))
    layer(x)
    return rows


def test_a_token_costs_the_experts_that_it_takes():
    """Each expert is called once, for all of its tokens together."""
    layer = mixture(Experts(16, 2))
    assert sum(rows_computed(layer, torch.randn(3, 5, D))) == 15 * 2
    with torch.no_grad():
        rows = rows_computed(mixture(Experts(16, 2)), torch.randn(1, 1, D))
    assert sorted(filter(None, rows)) == [1, 1]
    assert rows.count(None) == 14


def test_an_expert_that_no_token_takes_has_a_gradient_of_zero():
    layer = mixture(Experts(4, 1, router_bias=True))
    with torch.no_grad():
        layer.router.bias[2] = -1e4
    layer(torch.randn(1, 9, D)).sum().backward()
    assert all(not p.grad.any() for p in layer.experts[2].parameters())
    assert all(p.grad is not None for p in layer.parameters())


def kept_for_backward(n_experts):
    """Numbers that autograd keeps of a forward, besides the parameters."""
    torch.manual_seed(0)
    layer, kept = mixture(Experts(n_experts, 2)), 0
    own = {p.data_ptr() for p in layer.parameters()}

    def count(x):
        nonlocal kept
        kept += x.numel() * (x.data_ptr() not in own)
        return x

    with torch.autograd.graph.saved_tensors_hooks(count, lambda x: x):
        layer(torch.randn(1, 64, D))
    return kept


def test_memory_for_the_backward_does_not_grow_with_the_number_of_experts():
    """But for the router's probability of each."""
    few, many = kept_for_backward(2), kept_for_backward(32)
    assert many - few <= 3 * 64 * 30


@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`")
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.slow
def test_a_compiled_model_with_experts_computes_the_same():
    model, ids = gn.DecoderOnly(20, 16, 2, 2, experts={"n_experts": 4}).eval(), torch.randint(20, (2, 7))
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(model, backend="eager")(ids), model(ids), atol=1e-5, rtol=1e-5)


# ------------------------------------------------------------------ as settings of a model


def test_a_model_has_experts_in_all_layers_but_those_that_are_dense():
    model = gn.DecoderOnly(20, D, 3, 2, d_ff=F, experts={"n_experts": 4, "d_ff": 6, "dense_layers": [1]})
    kinds = [type(block.ffn) for block in model.stack.blocks]
    assert kinds == [MixtureOfExperts, FeedForward, MixtureOfExperts]
    assert model.stack.blocks[1].ffn.up.out_features == F
    assert model.stack.blocks[0].ffn.experts[0].up.out_features == 6
    assert gn.ModelConfig.from_dict(model.config.to_dict()) == model.config
    assert plan(model.config).total == sum(p.numel() for p in model.parameters())


WRONG = [
    ({"n_experts": 0}, "n_experts must be a whole number between 1"),
    ({"n_experts": 4, "top_k": 5}, "takes at most all 4 experts; got top_k=5"),
    ({"n_experts": 4, "d_ff": 0}, "d_ff must be a whole number between 1"),
    ({"n_experts": 4, "shared_gate": True}, "give its width, shared="),
    ({"n_experts": 4, "dense_layers": [-1]}, "dense_layers must be a list"),
    ({"n_experts": 4, "topk": 2}, "did you mean 'top_k'"),
    ({"n_experts": "4"}, "n_experts must be a whole number"),
    ({"top_k": 2}, "experts need n_experts"),
    (8, "experts must be"),
]


@pytest.mark.parametrize(("given", "said"), WRONG)
def test_settings_that_no_model_can_have_are_named(given, said):
    with pytest.raises(gn.BadValue, match=said):
        gn.DecoderOnly(20, D, 1, 2, experts=given)
