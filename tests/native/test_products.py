"""Compiled products are PyTorch's, for every form of the weights, number of rows, width and number of threads."""

import ctypes
import subprocess
import sys
from pathlib import Path

import gguf
import pytest
import torch
from gguf import GGMLQuantizationType as Type
from torch.autograd.forward_ad import dual_level, make_dual, unpack_dual
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

import gnomon as gn
from gnomon import linear as lines
from gnomon import native
from gnomon.linear import Linear, linear
from gnomon.native import KINDS, ROWS, STORED_AS, product
from gnomon.native.build import LIBRARY

compiled = pytest.mark.skipif(native.library() is None, reason="no C compiler when this was installed, or no AVX2")
FORMS = {"int8": Type.Q8_0, "int4": Type.Q4_0}


def stored(weight, kind):
    """The matrix in a form, and what it holds there, as float64."""
    if kind in FORMS:
        blocks = gguf.quants.quantize(weight.numpy(), FORMS[kind])
        return torch.from_numpy(blocks), torch.from_numpy(gguf.quants.dequantize(blocks, FORMS[kind])).double()
    kept = weight.to(STORED_AS[kind])
    return kept, kept.double()


class Seen(TorchFunctionMode):
    """Notes the functions of torch that are called."""

    def __init__(self):
        super().__init__()
        self.functions = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.functions.append(function)
        return function(*args, **(kwargs or {}))


def error(x, held, bias, y):
    """The largest error in roundings of float32, of a sum whose terms have the size of the row's."""
    exact = x.double() @ held.T + (0 if bias is None else bias.double())
    size = x.double().norm(dim=-1, keepdim=True) * held.norm(dim=-1) + (0 if bias is None else bias.abs())
    return float(((y.double() - exact).abs() / size).amax() / torch.finfo(torch.float32).eps)


@compiled
@pytest.mark.parametrize("kind", KINDS)
def test_a_product_is_that_of_the_stored_weights_to_the_last_bits(kind):
    for width in (32, 96, 576) if kind in FORMS else (1, 31, 32, 33, 96, 577):
        weight, bias = torch.randn(70, width), torch.randn(70)
        kept, held = stored(weight, kind)
        for rows in range(1, ROWS[kind] + 1):
            x = torch.randn(rows, width)
            for b in (None, bias):
                y = product(x, kept, b, 70, kind)
                assert y is not None
                assert error(x, held, b, y) < 4


@compiled
@pytest.mark.slow
def test_the_number_of_threads_changes_no_bit():
    script = """
import torch
from gnomon.native import KINDS, library, product
from tests.native.test_products import stored
torch.manual_seed(0)
for kind in KINDS:
    kept, x, bits = stored(torch.randn(1001, 64), kind)[0], torch.randn(3, 64), []
    for n in (1, 2, 3):
        torch.set_num_threads(n)
        bits.append(product(x, kept, None, 1001, kind))
    assert library().parallel == 0 or all(torch.equal(bits[0], b) for b in bits[1:])
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(gn.__file__).parents[2])


@compiled
@pytest.mark.parametrize("kind", KINDS)
def test_with_shorter_vectors_or_none_the_numbers_are_the_same(kind):
    vectors = ctypes.CDLL(str(LIBRARY)).gnomon_vectors
    kept, held = stored(torch.randn(11, 64), kind)
    for rows in (5, 13):
        x = torch.randn(rows, 64)
        longest = product(x, kept, None, 11, kind)
        try:
            for level in (0, 1):
                assert vectors(level) == level
                assert error(x, held, None, product(x, kept, None, 11, kind)) < 4
        finally:
            vectors(2)
        assert torch.equal(longest, product(x, kept, None, 11, kind))


def test_what_it_cannot_do_is_left_to_torch():
    weight, bias, x = torch.randn(6, 4), torch.randn(6), torch.randn(2, 4)
    assert product(torch.randn(99, 4), weight, bias, 6) is None  # many rows
    assert product(x[:0], weight, bias, 6) is None
    assert product(x.double(), weight.double(), None, 6) is None
    assert product(x, weight.half(), None, 6) is None  # of weights said to be float32
    assert product(x, torch.randn(4, 6).T, None, 6) is None
    assert product(x, weight.requires_grad_(), None, 6) is None
    assert product(x.to("meta"), weight.detach().to("meta"), None, 6) is None
    with torch.no_grad(), FlopCounterMode(display=False) as flops:
        linear(x, weight)
    assert flops.get_total_flops() == 2 * 2 * 4 * 6
    with torch.no_grad(), Seen() as seen:
        linear(x, weight)
    assert F.linear in seen.functions


@compiled
@torch.no_grad()
def test_matrices_that_do_not_fit_are_torchs_to_refuse():
    """Compiled code would read past their end."""
    x = torch.randn(2, 32)
    for kind in KINDS:
        kept = stored(torch.randn(6, 64), kind)[0]
        assert product(x, kept, None, 6, kind) is None
        assert product(torch.randn(2, 64), kept, None, 7, kind) is None
        assert product(torch.randn(2, 64), kept, torch.zeros(5), 6, kind) is None
    with pytest.raises(RuntimeError, match="shape"):
        linear(x, torch.randn(6, 64))
    assert product(x, torch.randn(6, 32).to_sparse(), None, 6) is None


@compiled
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
@torch.no_grad()
def test_casts_traces_and_forward_derivatives_are_those_of_torch():
    layer, x, other = Linear(8, 4), torch.randn(3, 8), torch.randn(3, 8)
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(x).dtype == torch.bfloat16
    torch.testing.assert_close(torch.jit.trace(layer, (x,))(other), layer(other))
    with dual_level():
        tangent = unpack_dual(layer(make_dual(x, other))).tangent
    torch.testing.assert_close(tangent, F.linear(other, layer.weight))


@compiled
def test_a_layer_is_torchs_with_and_without_gradients():
    layer = Linear(48, 33)
    x = torch.randn(2, 1, 48, requires_grad=True)
    want = F.linear(x, layer.weight, layer.bias)
    layer(x).sum().backward()
    assert x.grad is not None
    with torch.no_grad():
        torch.testing.assert_close(layer(x), want)
        torch.testing.assert_close(torch.vmap(layer)(x), want)
        inside = torch.compile(layer, backend="eager", fullgraph=True)
        torch.testing.assert_close(inside(x), want)


@compiled
def test_a_strided_row_is_read_where_it_lies():
    weight, x = torch.randn(20, 16), torch.randn(3, 5, 16)[:, -1:]
    with torch.no_grad():
        torch.testing.assert_close(product(x, weight, None, 20), F.linear(x, weight))


def _called(monkeypatch):
    """How often oneDNN multiplied."""
    calls, product_ = [], lines._product
    monkeypatch.setattr(lines, "_product", lambda *given: (calls.append(given), product_(*given))[1])
    return calls


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch was built without oneDNN")
def test_a_large_product_and_both_its_derivatives_are_torchs(monkeypatch):
    calls, layer = _called(monkeypatch), Linear(96, 257)
    x = torch.randn(3, 200, 96, requires_grad=True)

    def derivatives(function):
        y = function(x)
        first = torch.autograd.grad((y * y).sum(), [x, layer.weight, layer.bias], create_graph=True)
        second = torch.autograd.grad(sum((g * g).sum() for g in first), [x, layer.weight, layer.bias])
        return [y, *first, *second]

    mine = derivatives(layer)
    assert calls
    for a, b in zip(mine, derivatives(lambda x: F.linear(x, layer.weight, layer.bias)), strict=True):
        assert (a - b).norm() <= 1e-5 * b.norm()


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch was built without oneDNN")
@torch.no_grad()
def test_large_products_that_torch_must_do_are_left_to_it(monkeypatch):
    calls, layer, x = _called(monkeypatch), Linear(256, 257), torch.randn(99, 256)
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(x).dtype == torch.bfloat16
    torch.testing.assert_close(torch.vmap(layer)(x[:, None])[:, 0], layer(x))
    assert len(calls) == 1  # the second of these two
    with FlopCounterMode(display=False) as flops:
        layer(x)
    assert flops.get_total_flops() == 2 * 99 * 256 * 257
    with pytest.raises(RuntimeError, match="shape"):
        linear(x, torch.randn(6000, 64))
    layer.double()(x.double())
    monkeypatch.setenv("GNOMON_NATIVE", "off")
    layer.float()(x)
    assert len(calls) == 1
