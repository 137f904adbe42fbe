"""Compiled models: one graph without a break, and no new one for every token."""

import pytest
import torch
from torch._dynamo.testing import CompileCounter

import gnomon as gn

# What torch's compiler says of its own doings, and of a cached function of whole numbers that it traces through.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`"),
]

LEFT = gn.Layout.padded(torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]]))


def small(position):
    return gn.DecoderOnly(11, 16, 1, 2, position=position, max_positions=64, init_std=0.2)


@pytest.fixture(autouse=True)
def afresh():
    """What other tests compiled counts towards torch's limit of compilations."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


RECIPES = [gn.positions.get("sinusoidal", positions=text) for text in ("randomized(64)", "cape", "random-start(64)")]


@pytest.mark.slow
@pytest.mark.parametrize("position", [*gn.positions.names(), *RECIPES], ids=str)
def test_forward_and_backward_are_one_graph(position):
    """`fullgraph` refuses whatever would send the computation back to Python; a recipe's draws are the same ones."""
    model, ids = small(position), torch.randint(11, (2, 5))
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    torch.manual_seed(1)
    compiled(ids).square().sum().backward()
    got = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    torch.manual_seed(1)
    model(ids).square().sum().backward()
    for mine, want in zip(got, (p.grad for p in model.parameters() if p.grad is not None), strict=True):
        torch.testing.assert_close(mine, want, atol=1e-4, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("position", "kind", "at"), [("rope", "growing", None), ("t5", "preallocated", LEFT)])
def test_forty_steps_are_compiled_at_most_three_times(position, kind, at):
    """A number of Python's that grows with the cache would be compiled for anew at each step."""
    model, counter, ids = small(position).eval(), CompileCounter(), torch.randint(11, (2, 45))
    step, cache, plain = torch.compile(model, backend=counter), model.cache(kind, capacity=64), model.cache()
    with torch.no_grad():
        for held in (cache, plain):
            model(ids[:, :5], at, held)
        for n in range(5, 45):
            token = ids[:, n : n + 1]
            torch.testing.assert_close(step(token, cache=cache), model(token, cache=plain), atol=1e-5, rtol=1e-5)
    assert counter.frame_count <= 3


@pytest.mark.slow
@pytest.mark.parametrize(("position", "kind"), [("rope", "growing"), ("learned", "preallocated")])
def test_forty_steps_from_an_empty_cache_are_compiled_at_most_three_times(position, kind):
    """For nothing held, for one token held, and for all that follows."""
    model, counter, ids = small(position).eval(), CompileCounter(), torch.randint(11, (2, 40))
    step, cache = torch.compile(model, backend=counter), model.cache(kind, capacity=64)
    with torch.no_grad():
        steps = [step(ids[:, n : n + 1], cache=cache) for n in range(40)]
        torch.testing.assert_close(torch.cat(steps, 1), model(ids), atol=1e-5, rtol=1e-5)
    assert counter.frame_count <= 3


STRATEGIES = {
    "greedy": gn.generate.Greedy(), "sample": gn.generate.Sample(0.9), "beam": gn.generate.Beam(3),
    "contrastive": gn.generate.Contrastive(),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_forty_tokens_of_a_strategy_are_compiled_at_most_three_times(strategy):
    """For prompts of two lengths, the first step and all that follow. Drafts, whose lengths vary, need more."""
    model, counter = small("rope").eval(), CompileCounter()
    asked = {"strategy": strategy, "max_new_tokens": 40, "eos_ids": None, "seed": 1}
    want = model.generate([[1, 2, 3], [4, 5, 6, 7, 8]], **asked)
    model.hidden = torch.compile(model.hidden, backend=counter)
    got = model.generate([[1, 2, 3], [4, 5, 6, 7, 8]], **asked)
    assert [row.ids for row in got] == [row.ids for row in want]
    assert 0 < counter.frame_count <= 3
