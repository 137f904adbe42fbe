"""attend: the one entrance to attention. It chooses a kernel from static facts, never from values."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

from gnomon.attention import kernels
from gnomon.attention.dense import How, dense, share_heads
from gnomon.errors import BadValue, unknown
from gnomon.layout import Layout
from gnomon.positions.base import PositionEncoding
from gnomon.shapes import Float

Kernel = Callable[[Float, Float, Float, PositionEncoding, Layout, Layout, How], Float]

KERNELS: dict[str, Kernel] = {
    "dense": dense,
    "content": kernels.content,
    "plain": kernels.plain,
    "causal": kernels.causal,
    "toeplitz": kernels.toeplitz,
    "flex": kernels.flex,
    "blocked": kernels.blocked,
}

_watched: ContextVar[list[str] | None] = ContextVar("watched", default=None)


def attend(
    q: Float,
    k: Float,
    v: Float,
    position: PositionEncoding,
    at: Layout,
    k_at: Layout,
    *,
    causal: bool = True,
    window: int | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
    kept: int = 0,
    softcap: float | None = None,
    sinks: Float | None = None,
    kernel: str | None = None,
) -> Float:
    """Attention of q (B, H, T, C) over k, v (B, K, S, C) -> (B, H, T, C); H must be a multiple of K.

    position  its bias (and score, if it defines one) is used; rotation has already happened
    at, k_at  where queries and keys sit; what padded and unfilled slots hold (NaN too) changes nothing
    window    nearest tokens seen, itself included; scale: default 1/sqrt(C), the bias is added after it
    dropout   on the weights; the caller passes 0 outside training
    kept      tokens at positions below this stay visible from outside the window
    softcap   c of c tanh(score / c); sinks: (H,) logits that take part in the softmax and give nothing
    kernel    a name of KERNELS instead of the automatic choice
    """
    _check(q, k, v, at, k_at)
    how = How(causal, window, q.shape[-1] ** -0.5 if scale is None else scale, dropout, kept, softcap, sinks)
    name = kernel or choose(position, at, k_at, how, q.device.type)
    if name not in KERNELS:
        raise unknown("attention kernel", name, KERNELS)
    if not torch.compiler.is_compiling() and (ran := _watched.get()) is not None:  # it would break the graph
        ran.append(name)
    q, k, v = _cleared(q, at), _cleared(k, k_at), _cleared(v, k_at)
    k, v = share_heads(k, q.shape[1]), share_heads(v, q.shape[1])
    with torch.autocast(q.device.type, enabled=False):  # it would round a bias, and far tokens' weights by percents
        return KERNELS[name](q, k, v, position, at, k_at, how)


def _check(q: Float, k: Float, v: Float, at: Layout, k_at: Layout) -> None:
    """Raise BadValue unless heads can be shared and every token has a place."""
    if q.shape[1] % k.shape[1] or k.shape[1] != v.shape[1]:
        raise BadValue(f"{q.shape[1]} query heads cannot share {k.shape[1]} of keys and {v.shape[1]} of values")
    placed, given = (at.shape[1], k_at.shape[1], k_at.shape[1]), (q.shape[2], k.shape[2], v.shape[2])
    if placed != given:
        raise BadValue(f"queries, keys and values are {given} tokens long, but their layouts place {placed}")


def choose(position: PositionEncoding, at: Layout, k_at: Layout, how: How, device: str) -> str:
    """The kernel for this encoding, these layouts and settings.

    1  the encoding defines the score itself, or what is done to scores is no sum -> content (dense, in blocks)
    2  nothing is added and nothing hidden             -> plain;  only the future hidden, same tokens -> causal
    3  dense layouts, what is added depends on distance -> toeplitz (CPU), flex (CUDA)
    4  everything else                                 -> flex (CUDA), blocked (elsewhere, one query, dropout)
    """
    if defines_score(position) or not how.bare:
        return "content"
    if at.kind == k_at.kind == "dense" and how.dropout == how.kept == 0:
        biased = position.acts == "score"
        if not biased and not how.causal and how.window is None:
            return "plain"
        if not biased and how.causal and how.window is None and at is k_at:
            return "causal"
        if device == "cpu" and (position.relative or not biased):
            return "toeplitz"
    many = at.shape[1] > 1  # one query needs one row of mask, which is cheaper than preparing a fused kernel
    return "flex" if device == "cuda" and many and how.dropout == 0 else "blocked"


def defines_score(position: PositionEncoding) -> bool:
    """Whether the encoding overrides the score or the weighted sum itself, as content-dependent methods do."""
    cls = type(position)
    return cls.scores is not PositionEncoding.scores or cls.values is not PositionEncoding.values


@contextmanager
def watch() -> Iterator[list[str]]:
    """The names of the kernels that run inside the `with`, in order."""
    ran: list[str] = []
    token = _watched.set(ran)
    try:
        yield ran
    finally:
        _watched.reset(token)


def _cleared(x: Float, at: Layout) -> Float:
    """x (B, H, T, C) with 0 in slots that hold no token."""
    return x if at.doc is None else x.masked_fill(~at.real[:, None, :, None], 0.0)


__all__ = ["KERNELS", "attend", "choose", "defines_score", "watch"]
