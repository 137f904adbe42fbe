"""A compiled step of decoding is the step that the modules define, and where it cannot be, they take it."""

import copy
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import gnomon as gn
from gnomon import native
from gnomon.attention.cache import GrowingCache
from gnomon.models import step as steps
from gnomon.native.program import Step
from gnomon.stored import store

compiled = pytest.mark.skipif(native.library() is None, reason="no C compiler when this was installed, or no AVX2")
pytestmark = compiled
ROTATED = gn.positions.get("rope", pairing="interleaved", rotary_dim=4)
MODELS = {
    "llama": {"position": "rope", "norm": "rmsnorm", "gated": True, "activation": "silu", "n_kv_heads": 2},
    "gpt-2": {"position": "learned", "max_positions": 40, "activation": "gelu_tanh"},
    "neox": {"position": ROTATED, "residual": "parallel", "activation": "gelu", "bias": False},
    "phi": {"position": "rope", "residual": "one norm", "activation": "relu"},
    "bloom": {"position": "alibi", "input_norm": "layernorm"},
    "t5": {"position": "t5", "attention_scale": 1.0, "norm": "rmsnorm"},
    "gemma": {
        "position": "rope",
        "norm": "rmsnorm_plus_one",
        "placement": "sandwich",
        "qk_norm": True,
        "softcap": 3.0,
        "window": [3, None],
        "activation": "gelu_tanh",
        "gated": True,
        "d_head": 7 * 2,
    },
    "original": {"position": "sinusoidal", "placement": "post"},
    "olmo": {"position": "kerple", "placement": "branch", "qk_norm": "joint", "residual_scale": 0.4},
    "sinks": {"position": "rope", "sinks": True, "window": 4, "sink_tokens": 1},
}


def model_of(name, **more):
    sizes = {"vocab_size": 50, "d_model": 36, "n_layers": 2, "n_heads": 6, "d_ff": 45, "init_std": 0.2}
    model = gn.DecoderOnly(**{**sizes, "d_head": 6, **MODELS[name], **more}).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return model


@torch.no_grad()
def written(model, ids, at=None, first=4, kind="growing"):
    """The logits of each token read after the first ones, one at a time."""
    cache, T = model.cache(kind, capacity=ids.shape[1]), ids.shape[1]
    at = gn.Layout.dense(*ids.shape) if at is None else at
    model(ids[:, :first], at.tokens(slice(0, first)), cache)
    return torch.cat([model(ids[:, t : t + 1], at.tokens(slice(t, t + 1)), cache) for t in range(first, T)], 1)


def recorded(model, rows):
    """Whether steps of this model were taken in one call."""
    stack = model.decoder if hasattr(model, "decoder") else model.stack
    return steps._recordings.get(stack, {}).get(rows) is not None


def plainly(monkeypatch, *given, **options):
    with monkeypatch.context() as off:
        off.setenv("GNOMON_NATIVE", "off")
        return written(*given, **options)


@pytest.mark.parametrize("kind", ["growing", "preallocated"])
@pytest.mark.parametrize("name", MODELS)
def test_a_compiled_step_is_the_step_of_the_modules(name, kind, monkeypatch):
    model, ids = model_of(name), torch.randint(50, (3, 11))
    for at in (None, gn.Layout.padded([[0, 0] + [1] * 9, [1] * 11, [1] * 11])):
        want = plainly(monkeypatch, model, ids, at, kind=kind)
        assert not recorded(model, 3) or at is not None
        torch.testing.assert_close(written(model, ids, at, kind=kind), want, rtol=1e-4, atol=1e-5)
        assert recorded(model, 3)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "int8", "int4"])
def test_weights_in_fewer_bits_are_read_as_they_are_stored(kind, monkeypatch):
    model, ids = model_of("llama", d_model=64, d_ff=96), torch.randint(50, (2, 9))
    store(model, kind)
    torch.testing.assert_close(written(model, ids), plainly(monkeypatch, model, ids), rtol=1e-4, atol=1e-5)
    assert recorded(model, 2)


@pytest.mark.parametrize("name", ["t5", "rope", "sinusoidal"])
def test_a_decoder_that_looks_at_a_source_steps_in_one_call_too(name, monkeypatch):
    model = gn.EncoderDecoder(50, 32, 2, 4, position=name, init_std=0.2).eval()
    source = gn.Layout.padded([[1] * 7, [0, 0] + [1] * 5])
    ids = torch.randint(50, (2, 8))

    def run():
        cache = model.cache()
        with torch.no_grad():
            cache.memory = model.encode(torch.arange(14).view(2, 7), source)
            steps_ = [model.head(model.hidden(ids[:, t : t + 1], cache=cache)) for t in range(8)]
        return torch.cat(steps_, 1)

    mine = run()
    assert recorded(model, 2)
    monkeypatch.setenv("GNOMON_NATIVE", "off")
    torch.testing.assert_close(mine, run(), rtol=1e-4, atol=1e-5)


def test_what_lies_in_slots_without_a_token_changes_nothing():
    model, ids = model_of("llama"), torch.randint(50, (2, 6))
    at = gn.Layout.padded([[0, 0, 1, 1, 1, 1], [1] * 6])
    cache = model.cache("preallocated", capacity=9)
    with torch.no_grad():
        model(ids[:, :5], at.tokens(slice(0, 5)), cache)
        want = model(ids[:, 5:], at.tokens(slice(5, 6)), copy.deepcopy(cache))
        for store_ in (cache.k, cache.v):
            for room in store_.values():
                room[0, :, :2], room[:, :, 6:] = torch.nan, torch.nan
        assert torch.equal(model(ids[:, 5:], at.tokens(slice(5, 6)), cache), want)


ONES = nn.Parameter(torch.ones(45, 36))
CHANGES = {
    "a hook": lambda m: m.stack.blocks[0].ffn.register_forward_hook(lambda _, x, y: y * 2),
    "a weight that is replaced": lambda m: setattr(m.stack.blocks[1].ffn.up, "weight", ONES),
    "a weight whose memory is": lambda m: setattr(m.stack.blocks[0].attention.q.weight, "data", torch.ones(36, 36)),
    "a weight written in place": lambda m: m.stack.blocks[0].ffn.up.weight.data.mul_(2),
    "another module": lambda m: setattr(m.stack.blocks[0].ffn, "up", nn.Linear(36, 45)),
    "another setting": lambda m: setattr(m.stack.blocks[0].around_ffn, "scale", 3.0),
    "a method of one module": lambda m: setattr(m.stack.blocks[0].ffn, "forward", lambda x: x),
    "a module of somebody's own": lambda m: setattr(m.stack.blocks[0], "ffn", nn.Sequential(Own())),
    "dropout": lambda m: (setattr(m.stack.blocks[0].around_ffn, "drop", nn.Dropout(1.0)), m.train()),
}


class Own(nn.Module):
    """Something in the place of a layer."""

    def forward(self, x):
        return x.flip(-1)


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_changes_in_a_model_changes_its_next_step(change, monkeypatch):
    model, ids = model_of("original", position="none"), torch.randint(50, (1, 7))
    before = written(model, ids)
    assert recorded(model, 1)
    CHANGES[change](model)
    after = written(model, ids)
    torch.testing.assert_close(after, plainly(monkeypatch, model, ids), rtol=1e-4, atol=1e-5)
    assert not torch.allclose(after, before, atol=1e-2)


def test_steps_that_are_watched_or_learned_from_are_the_modules_own():
    model, ids = model_of("llama"), torch.randint(50, (1, 5))
    cache = model.cache()
    model(ids[:, :4], cache=cache)
    assert model(ids[:, 4:], cache=cache).requires_grad
    with torch.no_grad(), gn.attention.watch() as kernels:
        model(ids[:, 4:], cache=cache)
    assert kernels == ["plain", "plain"]
    trace = gn.Trace()
    with torch.no_grad():
        model(ids[:, 4:], cache=cache, trace=trace)
    assert len(trace.attention) == 2
    assert not recorded(model, 1)


def test_a_step_recorded_in_inference_mode_is_taken_outside_it_too():
    model, ids = model_of("llama"), torch.randint(50, (1, 6))
    with torch.inference_mode():
        first = written(model, ids)
    torch.testing.assert_close(written(model, ids), first.clone())


def test_a_default_dtype_of_another_size_changes_no_step():
    model, ids = model_of("llama"), torch.randint(50, (1, 6))
    want = written(model, ids)
    steps._recordings.clear()
    torch.set_default_dtype(torch.float64)
    try:
        got = written(model, ids)
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(got, want)


def test_caches_that_were_copied_do_not_write_over_one_another():
    model, ids = model_of("llama"), torch.randint(50, (1, 6))
    one = model.cache()
    with torch.no_grad():
        model(ids[:, :3], cache=one)
        model(ids[:, 3:4], cache=one)  # makes room
        two = copy.copy(one)
        two.k, two.v = dict(one.k), dict(one.v)
        right = model(ids[:, 4:5], cache=copy.deepcopy(one))
        model(ids[:, 5:], cache=two)
        assert torch.equal(model(ids[:, 4:5], cache=one), right)
        want = model(torch.cat([ids[:, :5], ids[:, :1]], 1))[:, -1:]
        torch.testing.assert_close(model(ids[:, :1], cache=one), want, rtol=1e-4, atol=1e-5)


def test_a_growing_cache_makes_room_rarely(monkeypatch):
    model, made, make = model_of("llama"), [], GrowingCache._room

    def counted(self, layer, more):
        before = self._rooms.get(layer)
        room = make(self, layer, more)
        made.append(room is not before)
        return room

    monkeypatch.setattr(GrowingCache, "_room", counted)
    written(model, torch.randint(50, (1, 34)), first=2)
    assert sum(made) == 2  # of each layer one, for 32 tokens and the two at once


def test_rows_that_change_places_go_on_where_they_were_moved():
    model, ids = model_of("llama"), torch.randint(50, (3, 8))
    cache, order = model.cache(), torch.tensor([2, 0, 2, 1])
    with torch.no_grad():
        model(ids[:, :4], cache=cache)
        model(ids[:, 4:5], cache=cache)  # makes room
        other = copy.copy(cache)
        cache.reorder(order)
        mine = [model(ids[order, t : t + 1], cache=cache) for t in range(5, 8)]
        torch.testing.assert_close(torch.cat(mine, 1), model(ids[order])[:, 5:], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(model(ids[:, 5:6], cache=other), model(ids[:, :6])[:, -1:], rtol=1e-4, atol=1e-5)


def test_instructions_are_as_long_as_the_compiled_code_takes_them():
    import ctypes

    from gnomon.native.build import LIBRARY

    assert ctypes.CDLL(str(LIBRARY)).gnomon_step_bytes() == ctypes.sizeof(Step)


@pytest.mark.slow
def test_threads_and_forks_change_no_bit_of_a_step():
    script = """
import copy, os, torch
from tests.models.test_step import model_of, recorded
torch.manual_seed(0)
model, ids = model_of("gemma"), torch.randint(50, (3, 9))
first = model.cache()
torch.set_grad_enabled(False)
model(ids[:, :4], cache=first)

def steps(n):
    torch.set_num_threads(n)
    cache = copy.deepcopy(first)
    return torch.cat([model(ids[:, t : t + 1], cache=cache) for t in range(4, 9)], 1)

one = steps(1)
assert recorded(model, 3) and torch.equal(one, steps(2)) and torch.equal(one, steps(3))
torch.set_num_threads(1)
child = os.fork()
if not child:
    os._exit(0 if torch.equal(steps(1), one) else 7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(gn.__file__).parents[2], timeout=120)
