"""Program: a forward of few rows as a list of compiled instructions, recorded from the Python that defines it.

A `Recorded` stands for a tensor (rows, width) while a model's own modules run over it: its sums, norms, activations and
products become instructions instead of numbers. Whatever else is asked of it raises Unrecordable, and the model runs as
it always did. steps.c carries the list out in one call.
"""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from gnomon.native import KINDS, STORED_AS, library
from gnomon.shapes import Float

PRODUCT, NORM, TURN, ATTEND, ACTIVATE, ADD = range(6)
IDENTITY, RELU, GELU, GELU_TANH, SILU = range(5)
KIND_OF = {dtype: kind for kind, dtype in STORED_AS.items() if dtype.is_floating_point}


class Unrecordable(Exception):
    """An operation that no instruction carries out."""


class Step(ctypes.Structure):
    """step_t of steps.c."""

    _fields_ = [
        *((name, ctypes.c_int32) for name in ("op", "kind", "wait", "heads")),
        *((name, ctypes.c_void_p) for name in ("x", "w", "b", "with_", "sinks", "y")),
        *((name, ctypes.c_int64) for name in ("rows", "inner", "out", "shared")),
        *((name, ctypes.c_int64) for name in ("by_row", "by_head", "by_slot", "mask_row", "mask_head")),
        ("scale", ctypes.c_float),
        ("eps", ctypes.c_float),
    ]


class Program:
    """Instructions over an arena of float32 rows. `rows` tokens run through it at once."""

    def __init__(self, rows: int) -> None:
        self.rows, self.steps = rows, list[Step]()
        self.uses: list[Tensor] = []  # weights, which stay while the program does
        self._arena: dict[int, Tensor] = {}
        self._read, self._written = set[int](), set[int]()
        self._free: dict[int, list[int]] = {}

    def place(self, width: int) -> int:
        """Room for (rows, width) numbers: that of a value which nobody holds any longer, or new."""
        if free := self._free.get(width):
            return free.pop()
        with torch.inference_mode(False):  # rooms made in inference mode could not be written outside it
            room = torch.zeros(self.rows, width, dtype=torch.float32, device="cpu")
        self._arena[room.data_ptr()] = room
        return room.data_ptr()

    def rows_at(self, at: int) -> Float:
        """The numbers (rows, width) that lie there."""
        return self._arena[at]

    def buffer(self, width: int) -> "Recorded":
        """A value in such a room."""
        return Recorded(self, width, self.place(width))

    def let_go(self, width: int, at: int) -> None:
        """The room of a value may be written over by what comes next."""
        self._free.setdefault(width, []).append(at)

    def fresh(self, at: int) -> bool:
        """Whether threads may still be writing there."""
        return at in self._written

    def reads(self, at: int) -> None:
        """The last instruction reads there too."""
        self._read.add(at)

    def use(self, weight: Tensor | None, *shape: int, dtype: torch.dtype = torch.float32) -> int | None:
        """The address of a weight of this shape."""
        if weight is None:
            return None
        ours = type(weight) in (Tensor, torch.nn.Parameter) and weight.device.type == "cpu" and not weight.is_neg()
        if not ours or weight.dtype != dtype or tuple(weight.shape) != shape or not weight.is_contiguous():
            raise Unrecordable("a weight that lies in memory in another way")
        self.uses.append(weight)
        return weight.data_ptr()

    def emit(self, reads: Sequence[int | None], writes: Sequence[int | None], **fields: Any) -> Step:
        """Append an instruction; where it needs what others write, or writes what they read, all wait before it."""
        if self._written.intersection([*reads, *writes]) or self._read.intersection(writes):
            self.steps[-1].wait = 1
            self._read, self._written = set(), set()
        self._read.update(at for at in reads if at is not None)
        self._written.update(at for at in writes if at is not None)
        step = Step(**{"scale": 1.0, "rows": self.rows, **fields})
        self.steps.append(step)
        return step

    def product(self, x: "Recorded", weight: Tensor, bias: Tensor | None, kind: str, out: int) -> "Recorded":
        """x W^T + b; `weight` as it is stored."""
        y = self.buffer(out)
        step = self.emit(
            [x.at],
            [y.at],
            op=PRODUCT,
            kind=KINDS[kind],
            x=x.at,
            w=weight.data_ptr(),
            b=self.use(bias, out),
            y=y.at,
            inner=x.width,
            out=out,
        )
        self.uses.append(weight)
        y.last = step
        return y

    def norm(
        self, x: "Recorded", width: int, weight: Tensor | None, bias: Tensor | None, eps: float, centred: bool
    ) -> "Recorded":
        """Every `width` numbers of x normed, LayerNorm (centred) or RMSNorm."""
        if x.width % width:
            raise Unrecordable("a norm over several rows")
        y = self.buffer(x.width)
        self.emit(
            [x.at],
            [y.at],
            op=NORM,
            kind=int(centred),
            x=x.at,
            w=self.use(weight, width),
            b=self.use(bias, width),
            y=y.at,
            rows=self.rows * x.width // width,
            inner=width,
            eps=eps,
        )
        return y

    def compile(self) -> None:
        """The list as C reads it; `self.steps` become its entries, so that what changes them changes it."""
        self.steps[-1].wait = 0  # the threads end together
        self._list = (Step * len(self.steps))(*self.steps)
        self.steps = list(self._list)

    def some(self, places: Sequence[int]) -> list[Step]:
        """The instructions at these places of the list."""
        return [self.steps[n] for n in places]

    def run(self, most: int) -> None:
        """Carry it out; attention sees at most `most` keys."""
        native = library()
        assert native is not None
        threads = torch.get_num_threads() if native.barrier else 1
        scratch = torch.empty(threads, max(1, most), dtype=torch.float32, device="cpu")
        native.steps(
            self._list,
            len(self.steps),
            scratch.data_ptr(),
            most,
            threads,
            native.parallel,
            native.rank,
            native.barrier,
        )


class Recorded:
    """A value (rows, width) of a program, which stands for a tensor (rows, 1, width)."""

    dtype = torch.float32

    def __init__(self, program: Program, width: int, at: int | None = None, made: Callable[..., int] | None = None):
        self.program, self.width = program, width
        self._at, self._made = at, made  # made: emits what computes it, once somebody reads it
        self.last: Step | None = None  # the instruction that makes it, into which more can be folded

    @property
    def at(self) -> int:
        """Where it lies."""
        if self._at is None:
            assert self._made is not None
            self._at = self._made(None)
        return self._at

    def __del__(self) -> None:
        if self._at is not None:
            self.program.let_go(self.width, self._at)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of the tensor."""
        return (self.program.rows, 1, self.width)

    def times(self, weight: Any, bias: Tensor | None) -> "Recorded":
        """x W^T + b, of a weight as `gnomon.linear.linear` takes it."""
        kind = KIND_OF.get(weight.dtype) if isinstance(weight, Tensor) else weight.kind
        held = weight if isinstance(weight, Tensor) else weight.blocks
        if kind is None or weight.shape[1] != self.width or weight.dtype is torch.float64:
            raise Unrecordable("a product with a weight of another kind")
        return self.program.product(self, held, bias, kind, weight.shape[0])

    def __add__(self, other: Any) -> "Recorded":
        if not isinstance(other, Recorded) or other.width != self.width:
            raise Unrecordable("a sum with something else")
        program, step, here = self.program, other.last, self.at
        if step is not None and step is program.steps[-1] and step.with_ is None and not program.fresh(here):
            step.with_ = here  # the product adds it
            program.reads(here)
            return other
        y = program.buffer(self.width)
        program.emit([here, other.at], [y.at], op=ADD, x=here, with_=other.at, y=y.at, inner=self.width)
        return y

    def __mul__(self, other: Any) -> "Recorded":
        if isinstance(other, Recorded) and self._at is None and self._made is not None:
            factor = other.at
            y = Recorded(self.program, self.width, self._made(factor))
            self._made = None
            return y
        if isinstance(other, int | float) and self.last is self.program.steps[-1] and self.last.with_ is None:
            self.last.scale *= other
            return self
        if not isinstance(other, int | float):
            raise Unrecordable("a multiple of what is no activation")
        y = self.program.buffer(self.width)
        here = self.at
        self.program.emit([here], [y.at], op=ACTIVATE, kind=IDENTITY, x=here, y=y.at, inner=self.width, scale=other)
        return y

    def float(self) -> "Recorded":
        """It is."""
        return self

    def to(self, dtype: torch.dtype) -> "Recorded":
        """As float32, which it is."""
        if dtype != torch.float32:
            raise Unrecordable("a cast")
        return self

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, given: tuple[Any, ...] = (), options: Mapping[str, Any] | None = None
    ) -> "Recorded":
        how = _FUNCTIONS.get(function)
        if how is None or not isinstance(given[0], Recorded):
            raise Unrecordable(f"{function}")
        return how(*given, **(options or {}))


def _activated(kind: int) -> Callable[..., Recorded]:
    def record(x: Recorded, inplace: bool = False) -> Recorded:
        def emit(factor: int | None) -> int:
            y = x.program.place(x.width)
            x.program.emit([x.at, factor], [y], op=ACTIVATE, kind=kind, x=x.at, with_=factor, y=y, inner=x.width)
            return y

        return Recorded(x.program, x.width, None, emit)

    return record


def _gelu(x: Recorded, approximate: str = "none") -> Recorded:
    return _activated(GELU if approximate == "none" else GELU_TANH)(x)


def _layer_norm(
    x: Recorded, shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Recorded:
    (width,) = shape
    return x.program.norm(x, width, weight, bias, eps, centred=True)


def _rms_norm(x: Recorded, shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None) -> Recorded:
    (width,) = shape
    return x.program.norm(x, width, weight, None, torch.finfo(torch.float32).eps if eps is None else eps, False)


def _dropout(x: Recorded, p: float = 0.5, training: bool = True, inplace: bool = False) -> Recorded:
    if training and p > 0:
        raise Unrecordable("dropout")
    return x


_FUNCTIONS: dict[Any, Callable[..., Recorded]] = {
    F.relu: _activated(RELU),
    F.silu: _activated(SILU),
    F.gelu: _gelu,
    F.layer_norm: _layer_norm,
    F.rms_norm: _rms_norm,
    F.dropout: _dropout,
}

__all__ = ["Program", "Recorded", "Step", "Unrecordable"]
