"""Masks and biases of distance: one number per distance and head in place of a T x S matrix."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from gnomon.attention import stretches
from gnomon.attention.dense import AttentionSettings, share_heads
from gnomon.attention.fused import fused_attention, memoize_small
from gnomon.attention.stretches import Seen, weights_and_scores
from gnomon.layout import Layout
from gnomon.native import attention as native
from gnomon.positions.base import PositionEncoding, position_dtype
from gnomon.shapes import Float

FEW = 16  #: queries below which a compiled kernel's preparations do not pay


def toeplitz(
    q: Float, k: Float, v: Float, position: PositionEncoding, at: Layout, k_at: Layout, settings: AttentionSettings
) -> Float:
    """Mask and bias depend on distance only: one number per distance and head, viewed as a T x S matrix.

    Distance falls along a row and rises down a column; with the queries flipped it falls along both, so row i' and
    column j read entry i' + j of the vector, a view with strides (1, 1). No T x S tensor exists. Where queries and keys
    are the same tokens, a stretch of queries is multiplied only with keys that one of them may see.
    """
    narrow = q.dtype
    q, k, v = (x.to(position_dtype(x.dtype)) for x in (q, k, v))
    by_distance = _shared_vector(position, at, k_at, settings, q.shape[1], q.dtype)
    seen = Seen(q.shape[2], k.shape[2], settings, at is k_at)
    if by_distance.requires_grad and torch.is_grad_enabled():
        k, v = share_heads(k, q.shape[1]), share_heads(v, q.shape[1])
        run: Callable[..., Float] = _LearnedToeplitz.apply
        out = run(q, k, v, by_distance, settings.scale_of(q), seen)
    else:
        out = _attend_in_stretches(q, k, v, by_distance, settings.scale_of(q), seen)
    return out.to(narrow)


def attend_compiled(
    name: str,
    q: Float,
    k: Float,
    v: Float,
    position: PositionEncoding,
    at: Layout,
    k_at: Layout,
    settings: AttentionSettings,
) -> Float | None:
    """The same, and what `plain` and `causal` compute, by the compiled kernel; None where it cannot or would not gain.
    Keys and values may have fewer heads than queries."""
    T, S = q.shape[2], k.shape[2]
    if T < FEW or (name != "toeplitz" and not native.beats_torch()):
        return None
    narrow = q.dtype
    if name == "toeplitz":
        q, k, v = (x.to(position_dtype(x.dtype)) for x in (q, k, v))
    if not native.can_attend(q, k, v):
        return None
    if name == "toeplitz":
        by_distance = _shared_vector(position, at, k_at, settings, q.shape[1], q.dtype)
    else:
        by_distance = _nothing_added(T, S, settings.causal)
    out = native.attend(q, k, v, by_distance, settings.scale_of(q))
    return None if out is None else out.to(narrow)


@lru_cache(16)
@torch.inference_mode(False)
def _nothing_added(T: int, S: int, causal: bool) -> Float:
    """(1, T + S - 1) of 0; of -inf where a key comes after its query. Without the latter, of any T tokens and S."""
    ahead = torch.arange(T + S - 1, device="cpu") - (T - 1)
    return torch.zeros(1, T + S - 1, device="cpu").masked_fill(ahead > 0 if causal else ahead > S, float("-inf"))


def _shared_vector(
    position: PositionEncoding, at: Layout, k_at: Layout, settings: AttentionSettings, n_heads: int, dtype: torch.dtype
) -> Float:
    """`distance_vector`, made once a forward for all layers."""
    key = (id(position), settings.causal, settings.window, n_heads, dtype)
    return memoize_small(k_at, at, key, distance_vector, position, at, k_at, settings, n_heads, dtype)


def _matrix(by_distance: Float, T: int, queries: slice, keys: slice) -> Float:
    """What is added to the scores of these of T queries, the last first, and keys: (H or 1, n, m), a view."""
    first = T - queries.stop + keys.start  # the entry of the last of these queries and the first of these keys
    N, n, m = by_distance.shape[1], queries.stop - queries.start, keys.stop - keys.start
    return by_distance[:, first:].as_strided((by_distance.shape[0], n, m), (N, 1, 1))


def _attend_in_stretches(q: Float, k: Float, v: Float, by_distance: Float, scale: float, seen: Seen) -> Float:
    """The fused kernel, over one stretch of queries after another."""
    parts = []
    for queries, keys in seen.stretches(stretches.STRETCH):
        mask = _matrix(by_distance, seen.T, queries, keys)[None]
        here = (q[:, :, queries].flip(2), k[:, :, keys], v[:, :, keys])
        parts.append(fused_attention(*here, mask, scale).flip(2))
    return parts[0] if len(parts) == 1 else torch.cat(parts, 2)


def distance_vector(
    position: PositionEncoding, at: Layout, k_at: Layout, settings: AttentionSettings, n_heads: int, dtype: torch.dtype
) -> Float:
    """(H or 1, T + S - 1): entry n is what a pair with i' + j = n adds to its score, i' counted from the last query."""
    T, S = at.shape[1], k_at.shape[1]
    last, first = at.one_row().tokens(slice(T - 1, T)), k_at.one_row().tokens(slice(0, 1))
    ahead = torch.arange(T + S - 1, device=at.device)
    pos, step, length = (x[:1] for x in (first.pos, first.step, first.length))  # of placed rows only time is read
    keys = Layout(pos + ahead, step + ahead, None, length.expand(1, T + S - 1), "dense")
    return position.score_mask(last, keys, settings.causal, settings.window, n_heads, dtype)[0, :, 0].contiguous()


class _LearnedToeplitz(torch.autograd.Function):
    """The same for a bias that is trained: fused forward, backward recomputed in blocks of queries.

    scaled_dot_product_attention would give the mask's gradient only by leaving its fused kernel and storing T x S.
    """

    @staticmethod
    def forward(ctx: Any, q: Float, k: Float, v: Float, by_distance: Float, scale: float, seen: Seen) -> Float:
        ctx.save_for_backward(q, k, v, by_distance)
        ctx.scale, ctx.seen = scale, seen
        return _attend_in_stretches(
            q, k, v, by_distance.detach(), scale, seen
        )  # torch's fused kernel takes no trained mask

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Float) -> tuple[Float | None, ...]:
        q, k, v, by_distance = (x.detach() for x in ctx.saved_tensors)
        (B, H, T, _), S = q.shape, k.shape[2]
        dq, dk, dv, d_by_distance = (torch.zeros_like(x) for x in (q, k, v, by_distance))
        rows = max(1, min(T, stretches.CACHED // (B * H * S)))
        for start in range(0, T, rows):
            queries = slice(start, min(start + rows, T))
            keys = ctx.seen.keys(queries.start, queries.stop)
            mask = _matrix(by_distance, T, queries, keys)
            here, do = q[:, :, queries].flip(2), d_out[:, :, queries].flip(2)
            near_k, near_v = k[:, :, keys], v[:, :, keys]
            p, ds = weights_and_scores(here, near_k, near_v, mask, do, ctx.scale, ctx.seen.same)
            dv[:, :, keys] += p.transpose(-1, -2) @ do
            dq[:, :, queries] = (ds @ near_k).flip(2) * ctx.scale
            dk[:, :, keys] += (ds.transpose(-1, -2) @ here) * ctx.scale
            along = ds.sum(0) if by_distance.shape[0] == H else ds.sum((0, 1))[None]
            first, n = T - queries.stop + keys.start, along.shape[1] + along.shape[2] - 1
            d_by_distance[:, first : first + n] += _antidiagonal_sums(along)
        return dq, dk, dv, d_by_distance, None, None


def _antidiagonal_sums(x: Float) -> Float:
    """(H, n, S) -> (H, n + S - 1): entry d sums x[i, j] over i + j = d. Padding each row by n shifts it by one."""
    H, n, S = x.shape
    sheared = F.pad(x, (0, n)).flatten(1)[:, : n * (S + n - 1)].view(H, n, S + n - 1)
    return sheared.sum(1)


__all__ = ["distance_vector", "toeplitz"]
