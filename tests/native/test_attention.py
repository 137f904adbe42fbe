"""Compiled attention and rotation are what their plain forms mean, forward and backward, with any vectors."""

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import gnomon as gn
from gnomon.attention import distances
from gnomon.attention.kernels import causal
from gnomon.layout import Layout
from gnomon.native import attention as native
from gnomon.native.build import FLASH

compiled = pytest.mark.skipif(native.library() is None, reason="no C compiler when this was installed, or no AVX2")
INF = float("inf")


@pytest.fixture(params=[0, 1, 2], ids=["no vectors", "AVX2", "AVX-512"])
def level(request):
    """One width of vectors after another; those that this processor lacks are left out."""
    loaded = ctypes.CDLL(str(FLASH))
    found = loaded.gnomon_flash_vectors(request.param)
    yield found if found == request.param else pytest.skip("not on this processor")
    loaded.gnomon_flash_vectors(native.library().level)


def plainly(q, k, v, by_distance, scale):
    """The definition of what is computed here, with a matrix of all scores."""
    T, S, shared = q.shape[2], k.shape[2], q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(shared, 1), v.repeat_interleave(shared, 1)
    s = q @ k.transpose(-1, -2) * scale + by_distance[:, (T - 1 - torch.arange(T))[:, None] + torch.arange(S)]
    blind = (s == -INF).all(-1, keepdim=True)
    return s.masked_fill(blind, 0.0).softmax(-1).masked_fill(blind, 0.0) @ v


def given(B, H, K, T, S, C, before, after, alike=False):
    """Queries, keys, values and a vector of distances under which a query sees so many keys before and after it."""
    q, k, v = (torch.randn(B, T, n, C).transpose(1, 2) for n, T in ((H, T), (K, S), (K, S)))
    ahead = torch.arange(T + S - 1) - (T - 1)
    vector = torch.randn(1 if alike else H, T + S - 1).masked_fill((ahead > after) | (ahead < -before), -INF)
    return [x.requires_grad_() for x in (q, k, v, vector)]


CASES = {
    "causal": (2, 2, 2, 100, 100, 24, INF, 0),
    "both sides": (1, 3, 3, 130, 70, 64, INF, INF),
    "shared heads": (2, 4, 2, 33, 65, 8, INF, INF),
    "odd width": (1, 2, 1, 65, 129, 33, INF, 0),
    "window": (1, 1, 1, 200, 200, 16, 20, 0),
    "blind": (1, 2, 2, 70, 70, 80, INF, -3),
    "one vector": (2, 3, 1, 64, 64, 32, INF, 0, True),
    "one query": (2, 2, 2, 1, 5, 1, INF, INF),
}


@compiled
@pytest.mark.parametrize("case", CASES)
def test_compiled_attention_and_its_gradients_are_the_definition(case, level):
    inputs = given(*CASES[case])
    out = native.attend(*inputs, 0.3)
    wide = [x.detach().double().requires_grad_() for x in inputs]
    want, cotangent = plainly(*wide, 0.3), torch.randn_like(out)
    torch.testing.assert_close(out.double(), want, atol=1e-5, rtol=0)
    grads = torch.autograd.grad(out, inputs, cotangent)
    for found, right in zip(grads, torch.autograd.grad(want, wide, cotangent.double()), strict=True):
        torch.testing.assert_close(found.double(), right, atol=1e-5 * max(1.0, float(right.abs().max())), rtol=0)


@compiled
def test_a_number_that_is_none_stays_visible(level):
    """A training run that overflows must be told so."""
    for bad in (float("nan"), INF):
        q, k, v, vector = (x.detach() for x in given(1, 1, 1, 40, 40, 16, INF, 0))
        k[0, 0, 20] = bad
        assert not native.attend(q, k, v, vector, 1.0)[0, 0, 20:].isfinite().all()
        q[0, 0, 7] = bad
        assert native.attend(q, k, v, vector, 1.0)[0, 0, 7].isnan().all()


@compiled
def test_it_serves_every_kernel_of_distances_and_leaves_the_rest_to_torch(monkeypatch):
    calls, healthy = [], native.attend
    monkeypatch.setattr(native, "attend", lambda *x: calls.append(1) or healthy(*x))
    at, alibi = Layout.dense(1, 40), gn.positions.get("alibi").build(n_heads=2)
    x = torch.randn(1, 2, 40, 8)
    shared = torch.randn(1, 1, 40, 8)
    torch.testing.assert_close(
        gn.attend(x, shared, shared, alibi, at), gn.attend(x, shared, shared, alibi, at, kernel="dense")
    )
    assert len(calls) == 1
    gn.attend(x.double(), x.double(), x.double(), alibi, at)
    gn.attend(x[:, :, :1], x, x, alibi, at.tokens(slice(39, None)), at)
    with FlopCounterMode(display=False):
        gn.attend(x, x, x, alibi, at)
    assert len(calls) == 1


@compiled
def test_layers_of_one_forward_share_the_vector_of_distances(monkeypatch):
    made, whole = [], distances.distance_vector
    monkeypatch.setattr(distances, "distance_vector", lambda *given: made.append(1) or whole(*given))
    model = gn.DecoderOnly(vocab_size=20, d_model=16, n_layers=5, n_heads=4, position="t5")
    model(torch.randint(0, 20, (2, 40))).sum().backward()
    assert len(made) == 1
    assert all(p.grad is not None for p in model.parameters())


@compiled
def test_what_is_the_same_for_all_models_survives_inference_mode():
    distances._nothing_added.cache_clear()
    x = torch.randn(1, 2, 20, 8, requires_grad=True)
    with torch.inference_mode():
        gn.attend(x, x, x)
    gn.attend(x, x, x).sum().backward()
    assert x.grad is not None


@compiled
def test_compiled_causal_attention_is_torchs(monkeypatch):
    """Where nothing is added it is used only where it is faster, which this asks for."""
    monkeypatch.setattr(native, "beats_torch", lambda: True)
    q, k, v = (torch.randn(2, 3, 50, 16) for _ in range(3))
    at = Layout.dense(2, 50)
    settings = gn.attention.AttentionSettings(scale=0.25)
    torch.testing.assert_close(gn.attend(q, k, v, at=at, scale=0.25), causal(q, k, v, None, at, at, settings))
    want = torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=0.25)
    torch.testing.assert_close(gn.attend(q, k, v, at=at, causal=False, scale=0.25), want)


# ------------------------------------------------------------------ rotation


@compiled
@pytest.mark.parametrize("pairing", ["half", "interleaved"])
@pytest.mark.parametrize("fraction", [1.0, 0.5])
def test_a_compiled_rotation_and_its_gradients_are_torchs(pairing, fraction, level):
    rope = gn.positions.get("rope", pairing=pairing, fraction=fraction).build(d_head=40)
    wide = gn.positions.get("rope", pairing=pairing, fraction=fraction).build(d_head=40).double()
    for at in (Layout.dense(3, 17), Layout.padded(torch.rand(3, 17) < 0.7)):
        x = torch.randn(3, 17, 2, 40).transpose(1, 2).requires_grad_()
        tables = rope.prepare(at)
        y = native.rotate(x, *tables, pairing == "interleaved")
        assert y is not None
        y64 = x.detach().double().requires_grad_()
        want = wide.rotate(y64, wide.prepare(at, torch.float64))
        torch.testing.assert_close(y.double(), want, atol=1e-6, rtol=1e-6)
        cotangent = torch.randn_like(y)
        (found,) = torch.autograd.grad(y, x, cotangent, create_graph=True)
        (right,) = torch.autograd.grad(want, y64, cotangent.double())
        torch.testing.assert_close(found.double(), right, atol=1e-6, rtol=1e-6)


@compiled
def test_a_rotation_is_left_to_torch_where_tables_are_trained_or_somebody_watches():
    x, table = torch.randn(1, 2, 5, 8), torch.randn(1, 1, 5, 4)
    assert native.rotate(x, table, table, False) is not None
    assert native.rotate(x, table.clone().requires_grad_(), table, False) is None
    assert native.rotate(x.double(), table.double(), table.double(), False) is None
    assert native.rotate(x.to("meta"), table, table, False) is None
    assert native.rotate(x, table[:, :, :3], table[:, :, :3], False) is None
    with FlopCounterMode(display=False):
        assert native.rotate(x, table, table, False) is None


@compiled
@pytest.mark.slow
def test_the_number_of_threads_changes_no_bit_of_attention():
    script = """
import torch
from gnomon.native import attention as native
from tests.native.test_attention import given
torch.manual_seed(0)
inputs, table, bits = given(3, 5, 5, 90, 90, 64, 90, 0), torch.randn(1, 1, 90, 32), []
for n in (1, 2, 3):
    torch.set_num_threads(n)
    out, turned = native.attend(*inputs, 0.1), native.rotate(inputs[0], table, table, True)
    grads = torch.autograd.grad(out.square().sum() + turned.square().sum(), inputs)
    bits.append([x.detach() for x in (out, turned, *grads)])
assert all(torch.equal(x, y) for x, y in zip(bits[0], bits[1])), "2"
assert all(torch.equal(x, y) for x, y in zip(bits[0], bits[2])), "3"
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
