"""Products of a weight matrix with a few rows, compiled: what a decoding step spends its time on.

Optional. Where no compiler was found at build time, or the processor has no AVX2, `product` says so by returning None
and PyTorch multiplies. GNOMON_NATIVE chooses: "auto" (default), "plain" (compiled, without vector instructions: slow,
for tests) or "off". What it computes is what `torch.nn.functional.linear` means, in float32, whatever the weights are
stored in; outputs are computed whole by one thread each, so their number changes nothing.
"""

import ctypes
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd import forward_ad

from gnomon.native.build import LIBRARY
from gnomon.shapes import Float

Kind = Literal["float32", "float16", "bfloat16", "int8", "int4"]
KINDS: dict[str, int] = {"float32": 0, "float16": 1, "int8": 2, "int4": 3, "bfloat16": 4}  #: as in products.h
ABI = 4
ROWS = dict.fromkeys(KINDS, 16)  #: with more rows a large product is faster
STORED_AS = {  #: the dtype of a matrix in each form; blocks are bytes
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "int8": torch.uint8,
    "int4": torch.uint8,
}
VECTORS = {"plain": 0, "avx2": 1}  #: what GNOMON_NATIVE holds the compiled code to
BLOCK = 32  #: weights that share a scale
BLOCK_BYTES = {"int8": 34, "int4": 18}  #: of a block
ALONE = 2**15  #: weights that one thread multiplies before another could begin


@dataclass(frozen=True)
class Library:
    """The entrances of steps.so, and of the OpenMP that PyTorch computes with (0 where there is none)."""

    multiply: Any
    steps: Any
    parallel: int
    rank: int
    barrier: int


def wanted() -> bool:
    """Whether anything but torch's own products is to be used."""
    return os.environ.get("GNOMON_NATIVE", "auto") != "off"


def open_compiled(file: Path, version: str, wanted: int) -> ctypes.CDLL | None:
    """A compiled file, if it is there and was made of this source: its function `version` says so."""
    if not file.is_file():
        return None
    try:
        loaded = ctypes.CDLL(str(file))
        return loaded if getattr(loaded, version)() == wanted else None
    except (OSError, AttributeError):
        return None


@cache
def library() -> Library | None:
    """The compiled products, or None where there are none to be had."""
    plain = os.environ.get("GNOMON_NATIVE", "auto") == "plain"
    if not wanted() or (loaded := open_compiled(LIBRARY, "gnomon_abi", ABI)) is None:
        return None
    if not loaded.gnomon_vectors(VECTORS.get(os.environ.get("GNOMON_NATIVE", "auto"), 2)) and not plain:
        return None
    multiply, address, number = loaded.gnomon_product, ctypes.c_void_p, ctypes.c_int64
    multiply.argtypes = [*[address] * 4, *[number] * 3, *[ctypes.c_int] * 2, *[address] * 2]
    multiply.restype = None
    steps = loaded.gnomon_steps
    steps.argtypes = [address, number, address, number, ctypes.c_int, *[address] * 3]
    steps.restype = None
    return Library(multiply, steps, *_entrances())


def openmp() -> tuple[int, int]:
    """Where OpenMP begins a parallel region, and where it says which thread asks."""
    return _entrances()[:2]


def _entrances() -> tuple[int, int, int]:
    """Addresses in the OpenMP that is loaded already: its threads are PyTorch's, and a second pool would fight them."""
    for file in sorted((Path(torch.__file__).parent / "lib").glob("libgomp*")):
        try:
            loaded = ctypes.CDLL(str(file), mode=os.RTLD_NOLOAD | os.RTLD_LOCAL)
            functions = (loaded.GOMP_parallel, loaded.omp_get_thread_num, loaded.GOMP_barrier)
        except (OSError, AttributeError):
            continue
        parallel, rank, barrier = (ctypes.cast(f, ctypes.c_void_p).value or 0 for f in functions)
        if parallel and rank and barrier:
            return parallel, rank, barrier
    return 0, 0, 0


def product(x: Float, weight: Tensor, bias: Float | None, out: int, kind: Kind = "float32") -> Float | None:
    """x (..., C) times a matrix of `out` rows stored as `kind`, plus bias (out,): (..., out) in float32.

    None where PyTorch has to: more rows than are worth it, a device or dtype of another kind, gradients, compiling.
    """
    if torch.compiler.is_compiling() or watched() or not in_memory(x) or x.dtype != torch.float32:
        return None
    width = x.shape[-1]
    rows = x.numel() // width if width else 0
    if not 0 < rows <= ROWS[kind] or (native := library()) is None:
        return None
    if torch.is_grad_enabled() and (
        x.requires_grad or weight.requires_grad or (bias is not None and bias.requires_grad)
    ):
        return None
    if not _holds(weight, (out, stored_width(width, kind)), STORED_AS[kind]):  # PyTorch names what does not fit
        return None
    if bias is not None and not _holds(bias, (out,), torch.float32):
        return None
    threads = torch.get_num_threads() if rows * out * width > ALONE else 1
    if threads > 1 and not native.parallel:
        return None
    x, y = x.contiguous(), x.new_empty((*x.shape[:-1], out))
    native.multiply(
        x.data_ptr(),
        weight.data_ptr(),
        None if bias is None else bias.data_ptr(),
        y.data_ptr(),
        rows,
        width,
        out,
        KINDS[kind],
        threads,
        native.parallel,
        native.rank,
    )
    return y


def stored_width(width: int, kind: Kind) -> int:
    """Numbers, or bytes of blocks, that a row of `width` weights is stored in."""
    return width if kind not in BLOCK_BYTES else width // BLOCK * BLOCK_BYTES[kind] if width % BLOCK == 0 else -1


def watched() -> bool:
    """Whether somebody counts, records, casts or transforms operations: they know torch's and not these."""
    return (
        torch._C._len_torch_dispatch_stack() > 0
        or torch._C._len_torch_function_stack() > 0
        or torch._C._functorch.peek_interpreter_stack() is not None
        or torch._C._get_tracing_state() is not None
        or torch.is_autocast_enabled("cpu")
        or forward_ad._current_level >= 0
    )


def _holds(x: Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> bool:
    """Whether these numbers lie in memory as the compiled code reads them."""
    return in_memory(x) and x.shape == shape and x.dtype == dtype and x.is_contiguous()


def in_memory(x: Tensor) -> bool:
    """Whether this is memory of the processor's own, and no tensor that stands for something else."""
    ours = type(x) in (Tensor, torch.nn.Parameter) and x.device.type == "cpu"
    return ours and x.layout is torch.strided and not x.is_neg()


__all__ = [
    "BLOCK",
    "BLOCK_BYTES",
    "KINDS",
    "ROWS",
    "STORED_AS",
    "Kind",
    "Library",
    "in_memory",
    "library",
    "openmp",
    "product",
    "stored_width",
    "wanted",
    "watched",
]
