"""attend: the one entrance to attention. It chooses a kernel from static facts, never from values."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, ParamSpec, Protocol

import torch
from torch.nn import functional as F

from gnomon.attention import distances, kernels
from gnomon.attention.dense import AttentionSettings, Content, dense, share_heads
from gnomon.attention.ordered import ordered
from gnomon.device import autocast_type
from gnomon.errors import BadValue, must_be, unknown, wrong
from gnomon.layout import ORDERED, Layout, check_layouts
from gnomon.positions.base import NoPE, PositionEncoding
from gnomon.settings import check_fields, help_text, sign
from gnomon.shapes import Float

P = ParamSpec("P")

Kernel = Callable[..., Float]  # (q, k, v, position, at, k_at, settings); dense and content also take a Content

KERNELS: dict[str, Kernel] = {
    "dense": dense,
    "content": kernels.content,
    "plain": kernels.plain,
    "causal": kernels.causal,
    "toeplitz": distances.toeplitz,
    "ordered": ordered,
    "flex": kernels.flex,
    "blocked": kernels.blocked,
}

COMPILED = ("plain", "causal", "toeplitz")  #: for which `gnomon.native` may have a faster form
NOTHING = NoPE()
SHAPE = "(batch, key/value heads, tokens, d_head)"
_watched: ContextVar[list[str] | None] = ContextVar("watched", default=None)


class Attend(Protocol[P]):
    """`attend`, whose keywords are the fields of AttentionSettings."""

    def __call__(
        self,
        q: Float,
        k: Float,
        v: Float,
        position: PositionEncoding | None = None,
        at: Layout | None = None,
        k_at: Layout | None = None,
        kernel: str | None = None,
        content: Content | None = None,
        *args: P.args,
        **settings: P.kwargs,
    ) -> Float:
        """Attention of q over k, v."""
        ...


def _takes(kind: Callable[P, AttentionSettings]) -> Callable[[Callable[..., Float]], Attend[P]]:
    def decorate(function: Callable[..., Float]) -> Attend[P]:
        sign(function, kind)
        function.__doc__ = f"{inspect.getdoc(function)}\n\n{help_text(AttentionSettings)}"
        return function

    return decorate


@_takes(AttentionSettings)
def attend(
    q: Float,
    k: Float,
    v: Float,
    position: PositionEncoding | None = None,
    at: Layout | None = None,
    k_at: Layout | None = None,
    kernel: str | None = None,
    content: Content | None = None,
    **settings: Any,
) -> Float:
    """Attention of q (B, H, T, C) over k, v (B, K, S, C) -> (B, H, T, C); H must be a multiple of K.

    position     its bias (and score, if it defines one) is used; rotation has already happened. None: nothing is added
    at, k_at     where queries and keys sit; what padded and unfilled slots hold (NaN too) changes nothing. Without them
                 keys sit at 0..S-1 and queries are the last T of these tokens
    kernel       a name of KERNELS instead of the automatic choice
    content      what an encoding that acts in attention reads besides; default: the tables of its first layer

    Raises BadValue for tensors and layouts that do not fit together, and for a kernel that cannot compute what is
    asked, naming what it lacks.
    """
    if not torch.compiler.is_compiling():
        check_fields(AttentionSettings, settings)
    return attention(q, k, v, position, at, k_at, AttentionSettings(**settings), kernel, content)


def attention(
    q: Float,
    k: Float,
    v: Float,
    position: PositionEncoding | None,
    at: Layout | None,
    k_at: Layout | None,
    settings: AttentionSettings,
    kernel: str | None = None,
    content: Content | None = None,
) -> Float:
    """`attend` with settings that were checked."""
    _check(q, k, v, position)
    must_be("content", content, Content | None)
    if settings.sinks is not None and settings.sinks.shape != q.shape[1:2]:
        raise BadValue(
            f"sinks has a number for each of the {q.shape[1]} heads, got shape {tuple(settings.sinks.shape)}"
        )
    position = NOTHING if position is None else position
    at, k_at = _resolve_layouts(q, k, at, k_at, settings.causal)
    _check_places(q, k, v, at, k_at)
    name = _check_kernel(kernel, position, at, k_at, settings) or choose(position, at, k_at, settings, q.device.type)
    if not torch.compiler.is_compiling() and (ran := _watched.get()) is not None:  # it would break the graph
        ran.append(name)
    q, k, v = _zero_padding(q, at), _zero_padding(k, k_at), _zero_padding(v, k_at)
    width, settings = v.shape[-1], replace(settings, scale=settings.scale_of(q))  # before columns are added
    if name not in ("dense", "content"):
        q, k, v = _of_one_width(q, k, v)
    beside = (_content(content, position, at, k_at),) if position.acts == "attention" else ()
    # autocast would round a bias, and far tokens' weights by percents
    with torch.autocast(autocast_type(q.device), enabled=False):
        if (
            name in COMPILED
            and (out := distances.attend_compiled(name, q, k, v, position, at, k_at, settings)) is not None
        ):
            return out[..., :width]
        if q.shape[2] > 1 or name not in kernels.GROUPED:
            k, v = share_heads(k, q.shape[1]), share_heads(v, q.shape[1])
        return KERNELS[name](q, k, v, position, at, k_at, settings, *beside)[..., :width]


def _content(content: Content | None, position: PositionEncoding, at: Layout, k_at: Layout) -> Content:
    """What the encoding reads besides queries and keys, without what padded slots may hold."""
    content = Content.of(position) if content is None else content
    q, k = (None if x is None else _zero_padding(x, where) for x, where in ((content.q, at), (content.k, k_at)))
    return Content(content.tables, q, k, content.lag)


def _check(q: Float, k: Float, v: Float, position: PositionEncoding | None) -> None:
    """Raise BadValue unless these are tensors of one width whose heads can be shared, and a built encoding."""
    for name, x, shape in (("q", q, "(batch, heads, tokens, d_head)"), ("k", k, SHAPE), ("v", v, SHAPE)):
        if not isinstance(x, torch.Tensor) or x.dim() != 4 or not x.is_floating_point():
            raise wrong(name, x, f"a floating-point tensor, {shape}")
    check_built(position)
    if q.shape[1] % k.shape[1] or k.shape[1] != v.shape[1]:
        raise BadValue(f"{q.shape[1]} query heads cannot share {k.shape[1]} of keys and {v.shape[1]} of values")
    if q.shape[3] != k.shape[3] or not q.shape[0] == k.shape[0] == v.shape[0] or not q.dtype == k.dtype == v.dtype:
        found = ", ".join(f"{name} {x.dtype} of shape {tuple(x.shape)}" for name, x in (("q", q), ("k", k), ("v", v)))
        raise BadValue(f"queries, keys and values have one batch and dtype, queries and keys one width; got {found}")


def check_built(position: object) -> None:
    """Raise BadValue unless this is an encoding that was built, or None."""
    how = 'gn.positions.get("alibi").build(n_heads=..., d_head=..., d_model=...) builds one'
    must_be("position", position, PositionEncoding | None, how)


def _resolve_layouts(q: Float, k: Float, at: Layout | None, k_at: Layout | None, causal: bool) -> tuple[Layout, Layout]:
    """Where queries and keys sit: as given, else keys at 0..S-1 and queries at the last T of these."""
    T, S = q.shape[2], k.shape[2]
    if k_at is None and (at is None or T != S):
        if at is not None or (T > S and causal):
            given = "only at places the queries" if at is not None else "neither has a layout"
            raise BadValue(f"{T} queries cannot be placed beside {S} keys where {given}: give at and k_at, two Layouts")
        k_at = Layout.dense(k.shape[0], S, k.device)
    k_at = at if k_at is None else k_at
    check_layouts(k_at=k_at)
    assert k_at is not None
    if at is None:
        at = k_at if T == S else k_at.tokens(slice(S - T, None)) if T < S else Layout.dense(q.shape[0], T, q.device)
    check_layouts(at=at)
    return at, k_at


def _check_places(q: Float, k: Float, v: Float, at: Layout, k_at: Layout) -> None:
    """Raise BadValue unless every token has a place."""
    placed, given = (at.shape[1], k_at.shape[1], k_at.shape[1]), (q.shape[2], k.shape[2], v.shape[2])
    if placed != given:
        raise BadValue(f"queries, keys and values are {given} tokens long, but their layouts place {placed}")
    for where in (at, k_at):
        where.expand(q.shape[0])


def choose(position: PositionEncoding, at: Layout, k_at: Layout, settings: AttentionSettings, device: str) -> str:
    """The kernel for this encoding, these layouts and settings: the first of these that can hold it all.

    1  the encoding acts in attention itself, or what is done to scores is no sum -> content (dense, in blocks)
    2  nothing is added and nothing hidden             -> plain;  only the future hidden, same tokens -> causal
    3  dense layouts, what is added depends on distance -> toeplitz (CPU), flex (CUDA)
    4  time counts up by one, anything is added        -> ordered (CPU), flex (CUDA)
    5  everything else                                 -> flex (CUDA), blocked (elsewhere, one query, dropout)
    """
    device = "cpu" if device == "meta" else device  # without memory: what a CPU would do
    many = at.shape[1] > 1  # one query needs one row of mask, which is cheaper than preparing a fused kernel
    fast = ("plain", "causal", *(("toeplitz",) if device == "cpu" else ()))
    rest = {"cpu": ("ordered",), "cuda": ("flex",)}.get(device, ()) if many else ()
    holds = (name for name in (*fast, *rest, "blocked") if not limitation(name, position, at, k_at, settings))
    return next(holds, "content")


def limitation(kernel: str, position: PositionEncoding, at: Layout, k_at: Layout, settings: AttentionSettings) -> str:
    """What this kernel cannot compute of what is asked, in words; "" where it computes all of it.

    Told without looking at values, from the kinds of the layouts and the settings.
    """
    biased, both_dense = position.acts == "score", at.kind == k_at.kind == "dense"
    both_ordered = at.kind in ORDERED and k_at.kind in ORDERED
    fused, unmasked = kernel not in ("dense", "content"), kernel in ("plain", "causal")
    in_order = unmasked or kernel in ("toeplitz", "ordered")  # reads time, and positions only where it is biased
    last = at.shape[1] == 1 and at in (k_at, k_at.newest)  # one token, the last: nothing is after it
    near = last and settings.window is not None and k_at.shape[1] <= settings.window
    rules = (
        (fused and position.acts == "attention", f"the scores that {position.name} defines"),
        (fused and settings.softcap is not None, "a soft cap"),
        (fused and settings.sinks is not None, "sinks"),
        (in_order and not both_ordered, "padding, packing or gaps: both layouts must be dense or placed"),
        (kernel == "toeplitz" and biased and not both_dense, "positions that do not count up by one"),
        (unmasked and biased, f"the bias of {position.name}"),
        (unmasked and settings.window is not None and not near, "a window"),
        (kernel == "plain" and settings.causal and not last, "a causal mask"),
        (kernel == "causal" and not settings.causal, "attention to both sides"),
        (kernel == "causal" and at is not k_at, "queries and keys that are not one Layout"),
        (kernel == "toeplitz" and biased and not position.relative, f"the bias of {position.name}, which is absolute"),
        (in_order and settings.window is not None and settings.sink_tokens > 0, "sink tokens"),
        ((in_order or kernel == "flex") and settings.dropout > 0, "dropout"),
    )
    return "; ".join(words for broken, words in rules if broken)


def _check_kernel(
    kernel: str | None, position: PositionEncoding, at: Layout, k_at: Layout, settings: AttentionSettings
) -> str | None:
    """The kernel that was asked for by name, checked; None where none was."""
    if kernel is None:
        return None
    must_be("kernel", kernel, str)
    if kernel not in KERNELS:
        raise unknown("attention kernel", kernel, KERNELS)
    if lacks := limitation(kernel, position, at, k_at, settings):
        raise BadValue(
            f"the attention kernel {kernel!r} cannot compute {lacks}; leave kernel out, and the one that can is taken"
        )
    return kernel


@contextmanager
def watch() -> Iterator[list[str]]:
    """The names of the kernels that run inside the `with`, in order."""
    ran: list[str] = []
    token = _watched.set(ran)
    try:
        yield ran
    finally:
        _watched.reset(token)


def watched() -> bool:
    """Whether somebody notes which kernels run."""
    return _watched.get() is not None


def _of_one_width(*given: Float) -> list[Float]:
    """Queries, keys and values with columns of 0 up to the widest, which change nothing: where values have another
    width, torch leaves its fused kernels and stores T x S scores."""
    width = max(x.shape[-1] for x in given)
    return [x if x.shape[-1] == width else F.pad(x, (0, width - x.shape[-1])) for x in given]


def _zero_padding(x: Float, at: Layout) -> Float:
    """x (B, H, T, C) with 0 in slots that hold no token."""
    return x if at.doc is None else x.masked_fill(~at.real[:, None, :, None], 0.0)


__all__ = ["KERNELS", "NOTHING", "attend", "attention", "check_built", "choose", "limitation", "watch", "watched"]
