"""Linear layers: torch's own, multiplied by whatever is fastest here and means the same.

few rows      compiled products (`gnomon.native`)
large         oneDNN, which torch brings along: it uses the vector instructions of every maker's processors. On AVX-512
              that is about twice as fast as torch's own choice where Intel did not make the processor
all others    torch.nn.functional.linear
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gnomon import native
from gnomon.native.program import Recorded
from gnomon.shapes import Float
from gnomon.stored import Stored, matrix

_KIND = {dtype: kind for kind, dtype in native.STORED_AS.items() if dtype.is_floating_point}
LARGE = 2**22  #: multiplications from which on oneDNN is worth its call
WIDE = torch.backends.cpu.get_cpu_capability() == "AVX512"  #: where oneDNN gains by columns of a sum too
_onednn = torch.ops.mkldnn._linear_pointwise if torch.backends.mkldnn.is_available() else None  # type: ignore[no-untyped-call]


def linear(x: Float, weight: Tensor | Stored, bias: Float | None = None) -> Float:
    """x (..., C) W^T + b, (..., out): what `torch.nn.functional.linear` means. Of half precision sums are float32."""
    if isinstance(x, Recorded):
        return x.times(weight, bias)
    if isinstance(weight, Stored):
        y = weight.product(x, bias)
        return many_rows(x, matrix(weight).to(x.dtype), bias) if y is None else y
    y = None
    if x.dtype == weight.dtype and (kind := _KIND.get(x.dtype)) is not None:
        wide_bias = bias if bias is None or kind == "float32" else bias.float()
        y = native.product(x if kind == "float32" else x.float(), weight, wide_bias, weight.shape[0], kind)  # type: ignore[arg-type]
    return many_rows(x, weight, bias) if y is None else y.to(x.dtype)


def many_rows(x: Float, weight: Float, bias: Float | None = None) -> Float:
    """The same of any number of rows and a matrix (out, C)."""
    if not _large(x, weight, bias):
        return F.linear(x, weight, bias)
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (x, weight, bias)):
        run: Callable[..., Float] = _OneDNN.apply
        return run(x, weight, bias)
    return _product(x, weight, bias)


def _product(x: Float, weight: Float, bias: Float | None = None) -> Float:
    assert _onednn is not None
    return _onednn(x, weight, bias, "none", [], "")


def _large(x: Float, weight: Float, bias: Float | None) -> bool:
    """Whether oneDNN is there, can multiply these and would gain."""
    if _onednn is None or torch.compiler.is_compiling() or native.watched():
        return False
    if x.numel() * weight.shape[0] < LARGE or not native.wanted():
        return False
    given = (x, weight) if bias is None else (x, weight, bias)
    fits = weight.dim() == 2 and x.dim() > 1 and x.shape[-1] == weight.shape[1]  # torch names what does not
    fits = fits and (bias is None or bias.shape == weight.shape[:1])
    plain = all(t.dtype == torch.float32 and native.in_memory(t) for t in given)
    return fits and plain


class _OneDNN(torch.autograd.Function):
    """The product and its gradients, which are products again."""

    @staticmethod
    def forward(ctx: Any, x: Float, weight: Float, bias: Float | None) -> Float:
        ctx.save_for_backward(x, weight)
        return _product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, dy: Float) -> tuple[Float | None, ...]:
        x, weight = ctx.saved_tensors
        wanted = ctx.needs_input_grad
        rows, seen = dy.flatten(0, -2), x.flatten(0, -2)
        dx = many_rows(dy, weight.t()) if wanted[0] else None
        dw = (many_rows if WIDE else F.linear)(rows.t(), seen.t()) if wanted[1] else None
        return dx, dw, rows.sum(0) if wanted[2] else None


class Linear(nn.Linear):
    """torch.nn.Linear in every respect but speed."""

    stores_weight = True  #: its weight may be kept in fewer bits, see `gnomon.stored`

    def forward(self, x: Float) -> Float:
        """x (..., in_features) -> (..., out_features)."""
        return linear(x, self.weight, self.bias)


__all__ = ["LARGE", "Linear", "linear", "many_rows"]
