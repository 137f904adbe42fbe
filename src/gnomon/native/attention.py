"""Attention under a bias of distance, and the rotation of pairs, compiled: forward, and backward for training.

Optional as `gnomon.native` is, under the same GNOMON_NATIVE. Float32 on the processor; `attend` and `rotate` return
None where PyTorch has to do it. Memory grows with the number of tokens: no matrix of scores is kept.
"""

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gnomon.native import in_memory, open_compiled, openmp, watched
from gnomon.native.build import FLASH
from gnomon.shapes import Float

ABI = 1
WIDEST = 512  #: of a head
ALONE = 2**16  #: numbers that one thread turns before another could begin
LEVELS = {"plain": 0, "auto": 2}  #: of vectors, at most


class _Place(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), *((name, ctypes.c_int64) for name in ("batch", "head", "row")))


class _AttentionJob(ctypes.Structure):
    _fields_ = (
        *((name, _Place) for name in ("q", "k", "v", "out", "d_out", "dq", "dk", "dv")),
        *((name, ctypes.c_void_p) for name in ("added", "log", "d_added")),
        *((name, ctypes.c_int64) for name in ("B", "H", "shared", "T", "S", "C", "added_head")),
        ("scale", ctypes.c_double),
        *((name, ctypes.c_int64) for name in ("next", "failed")),
    )


class _RotationJob(ctypes.Structure):
    _fields_ = (
        *((name, _Place) for name in ("x", "y")),
        *((name, ctypes.c_void_p) for name in ("cos", "sin")),
        *((name, ctypes.c_int64) for name in ("B", "H", "T", "C", "half", "table_batch", "neighbours", "threads")),
        ("sign", ctypes.c_double),
        ("rank", ctypes.c_void_p),
    )


@dataclass(frozen=True)
class Library:
    """The entrances of flash.so, and of the OpenMP that PyTorch computes with (0 where there is none)."""

    attend: Any
    turn: Any
    level: int  #: of vectors: 0 none, 1 AVX2, 2 AVX-512
    parallel: int
    rank: int

    def threads(self, wanted: int) -> int:
        """So many, where there is an OpenMP to run them."""
        return wanted if self.parallel and self.rank else 1


@cache
def library() -> Library | None:
    """The compiled attention, or None where there is none to be had."""
    level = LEVELS.get(os.environ.get("GNOMON_NATIVE", "auto"))
    if level is None or (loaded := open_compiled(FLASH, "gnomon_flash_abi", ABI)) is None:
        return None
    if (found := loaded.gnomon_flash_vectors(level)) < min(level, 1):  # PyTorch has vectors where this has none
        return None
    attend, turn = loaded.gnomon_flash, loaded.gnomon_turn
    attend.argtypes = [ctypes.POINTER(_AttentionJob), ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
    turn.argtypes, turn.restype = [ctypes.POINTER(_RotationJob), ctypes.c_void_p], None
    return Library(attend, turn, found, *openmp())


def attend(q: Float, k: Float, v: Float, by_distance: Float, scale: float) -> Float | None:
    """softmax(q k^T scale + m) v, with m[h, i, j] = by_distance[h, T - 1 - i + j]; -inf hides, and what sees nothing is
    0. q (B, H, T, C), k and v (B, K, S, C), by_distance (H or 1, T + S - 1) -> (B, H, T, C). None where PyTorch has to.
    """
    if not (can_attend(q, k, v) and in_memory(by_distance) and by_distance.dtype == torch.float32):
        return None
    return _attention(q, k, v, by_distance, scale)


def can_attend(*given: Float) -> bool:
    """Whether these queries, keys and values, all of one width, can be read here."""
    if torch.compiler.is_compiling() or watched() or library() is None:
        return False
    fits = all(in_memory(x) and x.dtype == torch.float32 and 0 not in x.shape for x in given)
    return fits and len({x.shape[-1] for x in given}) == 1 and given[0].shape[-1] <= WIDEST


def beats_torch() -> bool:
    """Whether it is faster where nothing is added too: torch's own kernel has no AVX-512 on processors that are not
    Intel's, and is as fast as this one with AVX2."""
    native = library()
    return native is not None and native.level > 1


class _Attention(torch.autograd.Function):
    """Nothing is kept but the inputs, the output and one number a query; backward computes the weights again."""

    @staticmethod
    def forward(ctx: Any, q: Float, k: Float, v: Float, by_distance: Float, scale: float) -> Float:
        q, k, v, by_distance = _in_rows(q), _in_rows(k), _in_rows(v), by_distance.contiguous()
        out, log = _like(q), q.new_empty(q.shape[:3])
        _run(False, scale, by_distance, log, None, q=q, k=k, v=v, out=out)
        ctx.save_for_backward(q, k, v, by_distance, out, log)
        ctx.scale = scale
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Float) -> tuple[Float | None, ...]:
        q, k, v, by_distance, out, log = ctx.saved_tensors
        (B, H, T, _), (K, S) = q.shape, k.shape[1:3]
        dq, dk, dv = _like(q), _like(k, H), _like(v, H)
        along = q.new_empty(B, H, T + S - 1) if ctx.needs_input_grad[3] else None
        places = {"q": q, "k": k, "v": v, "out": out, "d_out": _in_rows(d_out), "dq": dq, "dk": dk, "dv": dv}
        _run(True, ctx.scale, by_distance, log, along, **places)
        if K < H:
            dk, dv = (x.view(B, K, H // K, S, -1).sum(2) for x in (dk, dv))
        if along is not None:
            along = along.sum(0) if by_distance.shape[0] == H else along.sum((0, 1))[None]
        return dq, dk, dv, along, None


_attention: Callable[..., Float] = _Attention.apply


def _run(backward: bool, scale: float, by_distance: Float, log: Float, along: Float | None, **places: Float) -> None:
    native, q, k = library(), places["q"], places["k"]
    assert native is not None
    (B, H, T, C), (K, S) = q.shape, k.shape[1:3]
    job = _AttentionJob(
        **{name: _place(x) for name, x in places.items()},
        added=by_distance.data_ptr(),
        log=log.data_ptr(),
        d_added=None if along is None else along.data_ptr(),
        B=B,
        H=H,
        shared=H // K,
        T=T,
        S=S,
        C=C,
        added_head=by_distance.stride(0) if by_distance.shape[0] > 1 else 0,
        scale=scale,
    )
    threads = native.threads(min(torch.get_num_threads(), B * H))
    if native.attend(ctypes.byref(job), int(backward), threads, native.parallel):
        raise MemoryError(f"no memory for attention of {T} queries over {S} keys")


def rotate(x: Float, cos: Float, sin: Float, neighbours: bool) -> Float | None:
    """x (B, H, T, C) with its first pairs of channels turned by cos and sin (B or 1, 1, T, P), the rest as they are.

    A pair is two neighbours, or two channels P apart. Tables get no gradient. None where PyTorch has to.
    """
    given = (x, cos, sin)
    if torch.compiler.is_compiling() or watched() or not all(in_memory(y) and y.dtype == torch.float32 for y in given):
        return None
    if 0 in x.shape or cos.requires_grad or cos.shape[:3] not in ((1, 1, x.shape[2]), (x.shape[0], 1, x.shape[2])):
        return None
    if library() is None:
        return None
    cos, sin = cos.contiguous(), sin.contiguous()
    if not (torch.is_grad_enabled() and x.requires_grad):
        return _rotate(x, cos, sin, neighbours, 1.0)
    return _rotation(x, cos, sin, neighbours, 1.0)


class _Rotation(torch.autograd.Function):
    """The gradient is turned back."""

    @staticmethod
    def forward(ctx: Any, x: Float, cos: Float, sin: Float, neighbours: bool, sign: float) -> Float:
        ctx.save_for_backward(cos, sin)
        ctx.neighbours, ctx.sign = neighbours, sign
        return _rotate(x, cos, sin, neighbours, sign)

    @staticmethod
    def backward(ctx: Any, d: Float) -> tuple[Float | None, ...]:
        return _rotation(d, *ctx.saved_tensors, ctx.neighbours, -ctx.sign), None, None, None, None


_rotation: Callable[..., Float] = _Rotation.apply


def _rotate(x: Float, cos: Float, sin: Float, neighbours: bool, sign: float) -> Float:
    native, x = library(), _in_rows(x)
    assert native is not None
    (B, H, T, C), y = x.shape, _like(x)
    threads = native.threads(torch.get_num_threads() if x.numel() > ALONE else 1)
    job = _RotationJob(
        x=_place(x),
        y=_place(y),
        cos=cos.data_ptr(),
        sin=sin.data_ptr(),
        B=B,
        H=H,
        T=T,
        C=C,
        half=cos.shape[-1],
        table_batch=cos.stride(0) if cos.shape[0] > 1 else 0,
        neighbours=neighbours,
        threads=threads,
        sign=sign,
        rank=native.rank or None,
    )
    native.turn(ctypes.byref(job), native.parallel)
    return y


def _place(x: Float) -> _Place:
    return _Place(x.data_ptr(), *x.stride()[:3])


def _in_rows(x: Tensor) -> Tensor:
    """The same numbers, where those of a row lie side by side."""
    return x if x.stride(-1) == 1 or x.shape[-1] == 1 else x.contiguous()


def _like(x: Float, heads: int | None = None) -> Float:
    """Room for (B, heads, T, C) that lies as (B, T, heads, C), as projections write and read it."""
    B, H, T, C = x.shape
    return x.new_empty(B, T, H if heads is None else heads, C).transpose(1, 2)


__all__ = ["ABI", "Library", "attend", "beats_torch", "can_attend", "library", "rotate"]
