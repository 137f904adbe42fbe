"""Biases of any positions where time counts up by one: keys that no query of a stretch may see are left out."""

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from gnomon.attention import stretches
from gnomon.attention.dense import AttentionSettings
from gnomon.attention.fused import fused_attention
from gnomon.attention.stretches import Seen, weights_and_scores
from gnomon.layout import Layout
from gnomon.positions.base import PositionEncoding, position_dtype
from gnomon.shapes import Float

LEAST = 16  #: queries at once, however many keys they see
Parts = list[tuple[slice, slice]]  #: queries, and the keys that they are multiplied with
Added = Callable[[slice, slice], Float]  #: of some queries and keys: bias and mask (B or 1, H, n, m)


def ordered(
    q: Float, k: Float, v: Float, position: PositionEncoding, at: Layout, k_at: Layout, settings: AttentionSettings
) -> Float:
    """One stretch of queries after another, each with the bias of the keys that one of them may see.

    For a bias that is no function of distance (FIRE), and for any bias where positions do not count up by one.
    """
    narrow, H = q.dtype, q.shape[1]
    q, k, v = (x.to(position_dtype(x.dtype)) for x in (q, k, v))

    def added(queries: slice, keys: slice) -> Float:
        here, there = at.tokens(queries), k_at.tokens(keys)
        return position.score_mask(here, there, settings.causal, settings.window, H, q.dtype)

    alike = at.kind == k_at.kind == "dense"
    of_a_row = (1 if alike else q.shape[0]) * H * max(1, k.shape[2])
    rows = min(stretches.STRETCH, max(LEAST, stretches.CACHED // of_a_row))
    parts = Seen(q.shape[2], k.shape[2], settings, at is k_at).stretches(rows, always=True)
    learned = [p for p in position.parameters() if p.requires_grad and position.acts == "score"]
    if learned and torch.is_grad_enabled() and not torch.compiler.is_compiling():  # which cannot see into a backward
        run: Callable[..., Float] = _Learned.apply
        return run(added, parts, settings.scale_of(q), at is k_at, q, k, v, *learned).to(narrow)
    return _by_stretches(q, k, v, added, parts, settings.scale_of(q)).to(narrow)


def _by_stretches(q: Float, k: Float, v: Float, added: Added, parts: Parts, scale: float) -> Float:
    """The fused kernel, over one stretch of queries after another."""
    done = [
        fused_attention(q[:, :, here], k[:, :, there], v[:, :, there], added(here, there), scale)
        for here, there in parts
    ]
    return done[0] if len(done) == 1 else torch.cat(done, 2)


class _Learned(torch.autograd.Function):
    """The same for a bias that is trained: fused forward, backward computed again stretch by stretch."""

    @staticmethod
    def forward(ctx: Any, added: Added, parts: Parts, scale: float, same: bool, *tensors: Float) -> Float:
        ctx.save_for_backward(*tensors[:3])
        ctx.added, ctx.parts, ctx.scale, ctx.same, ctx.learned = added, parts, scale, same, tensors[3:]
        q, k, v = tensors[:3]
        return _by_stretches(q, k, v, added, parts, scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Float) -> tuple[Float | None, ...]:
        q, k, v = (x.detach() for x in ctx.saved_tensors)
        dq, dk, dv = (torch.zeros_like(x) for x in (q, k, v))
        sums = [torch.zeros_like(p) for p in ctx.learned]
        for here, there in ctx.parts:
            with torch.enable_grad():
                mask = ctx.added(here, there)
            do, near_q, near_k, near_v = d_out[:, :, here], q[:, :, here], k[:, :, there], v[:, :, there]
            p, ds = weights_and_scores(near_q, near_k, near_v, mask.detach(), do, ctx.scale, ctx.same)
            dv[:, :, there] += p.transpose(-1, -2) @ do
            dq[:, :, here] = (ds @ near_k) * ctx.scale
            dk[:, :, there] += (ds.transpose(-1, -2) @ near_q) * ctx.scale
            d_mask = ds.sum_to_size(mask.shape)
            for total, grad in zip(
                sums, torch.autograd.grad(mask, ctx.learned, d_mask, allow_unused=True), strict=True
            ):
                if grad is not None:
                    total += grad
        return None, None, None, None, dq, dk, dv, *sums


__all__ = ["ordered"]
