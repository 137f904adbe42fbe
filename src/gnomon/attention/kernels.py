"""Faster ways to compute what dense.py means. Masks and biases come from the same two functions of positions.

All take q (B, H, T, C), k and v (B, H, S, C), already cleared of garbage in padded slots.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import torch
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from torch.utils.checkpoint import get_device_states, set_device_states

from gnomon.attention.dense import AttentionSettings, Content, dense
from gnomon.attention.fused import fused_attention, memoize
from gnomon.device import autocast_type
from gnomon.layout import ORDERED, Layout, sees, visible
from gnomon.positions.base import PositionEncoding, position_dtype
from gnomon.shapes import Bool, Float

GROUPED = ("plain", "toeplitz", "blocked")  #: kernels that take keys and values of fewer heads where there is one query
BLOCK = 2**24  #: most numbers that a mask or score matrix of one block of queries may hold; 64 MiB of float32


def plain(
    q: Float, k: Float, v: Float, position: PositionEncoding, at: Layout, k_at: Layout, settings: AttentionSettings
) -> Float:
    """Every query sees every key and nothing is added: no mask at all."""
    return fused_attention(q, k, v, None, settings.scale_of(q))


def causal(
    q: Float, k: Float, v: Float, position: PositionEncoding, at: Layout, k_at: Layout, settings: AttentionSettings
) -> Float:
    """Queries and keys are the same tokens in time order: torch's own causal mask."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=settings.scale_of(q))


def blocked(
    q: Float, k: Float, v: Float, position: PositionEncoding, at: Layout, k_at: Layout, settings: AttentionSettings
) -> Float:
    """Any layout, any bias: the mask of one block of queries at a time, built again in backward."""

    def block(split: Parts, whole: Parts, at: Layout, part: slice) -> Float:
        (q,), (k, v), narrow = split, whole, split[0].dtype
        if position.acts == "score":
            q, k, v = (x.to(position_dtype(x.dtype)) for x in (q, k, v))
        key = (id(position), settings.causal, settings.window, settings.sink_tokens, q.shape[1], q.dtype)
        mask, blind = memoize(k_at, at, key, _mask, position, at, k_at, settings, q.shape[1], q.dtype)
        out = fused_attention(q, k, v, mask, settings.scale_of(q), settings.dropout)
        return out.masked_fill(blind, 0.0).to(narrow)

    heads = q.shape[1] if position.acts == "score" or settings.dropout else 1
    return _in_blocks(block, (q,), (k, v), at, max(heads, position.pair_width), position.parameters())


def _mask(
    position: PositionEncoding, at: Layout, k_at: Layout, settings: AttentionSettings, n_heads: int, dtype: torch.dtype
) -> tuple[Float, Bool]:
    """What is added to these queries' scores, or who may be seen; and which of them see nothing, (B, 1, T, 1): they
    look anywhere, and the answer is dropped."""
    ok = visible(at.one_row(), k_at.one_row(), settings.causal, settings.window, settings.sink_tokens)
    blind = ~ok.any(-1, keepdim=True)
    mask = ok | blind
    return position.add_bias(mask, at, k_at, n_heads, dtype) if position.acts == "score" else mask, blind


def content(
    q: Float,
    k: Float,
    v: Float,
    position: PositionEncoding,
    at: Layout,
    k_at: Layout,
    settings: AttentionSettings,
    content: Content | None = None,
) -> Float:
    """Scores that no fused kernel computes: the dense form, one block of queries at a time."""
    beside = Content.of(position) if content is None else content
    ends = k_at.shape[1] - at.shape[1]  # the key of query i is i + ends, where that is known
    known = at in (k_at, k_at.newest) and at.kind in ORDERED and k_at.kind in ORDERED

    def block(split: Parts, whole: Parts, here: Layout, part: slice) -> Float:
        keys = slice(0, part.stop + ends if known and settings.causal else k_at.shape[1])  # none of those ahead
        there, lag = k_at.tokens(keys), keys.stop - ends - part.stop if known else None
        k, v, *tables = whole
        state = None if beside.k is None else tables.pop()[:, :, keys]
        given = Content(tuple(tables), split[1] if split[1:] else None, state, lag)
        return dense(split[0], k[:, :, keys], v[:, :, keys], position, here, there, settings, given)

    split = (q,) if beside.q is None else (q, beside.q)
    whole = (k, v, *beside.tables) if beside.k is None else (k, v, *beside.tables, beside.k)
    learned = [*position.parameters(), *([] if settings.sinks is None else [settings.sinks])]
    longest = max([0, *(x.shape[-2] for x in beside.tables if x.dim() > 1)])  # a query is multiplied with all rows
    return _in_blocks(block, split, whole, at, max(q.shape[1], position.pair_width), learned, longest)


Parts = tuple[Float, ...]
Block = Callable[[Parts, Parts, Layout, slice], Float]


def _in_blocks(
    block: Block, split: Parts, whole: Parts, at: Layout, heads: int, learned: Iterable[Float], rows: int = 0
) -> Float:
    """block(split, whole, at, part) over slices of the queries, whose matrices hold `heads` numbers a pair of tokens.

    split    queries (B, H, T, C), and what else has a row for each; whole: keys, values, and what else all blocks need
    learned  parameters used inside; rows: of a table that a query meets besides the keys
    """
    (B, _, T, _), S = split[0].shape, whole[0].shape[2]
    n = max(1, BLOCK // (B * heads * max(1, S + rows)))
    if n >= T:
        return block(split, whole, at, slice(0, T))
    parts = [slice(i, min(i + n, T)) for i in range(0, T, n)]
    trained = (p for p in learned if p.requires_grad)
    run: Callable[..., Float] = _Blocks.apply
    return run(block, parts, at, len(split), len(whole), *split, *whole, *trained)


class _Blocks(torch.autograd.Function):
    """All blocks, one after another, into one tensor. Nothing but the inputs is kept: backward computes each again.

    (A checkpoint per block keeps as little, but its many small results among large scratch tensors leave holes in
    the heap that grow with the square of the length.)
    """

    @staticmethod
    def forward(
        ctx: Any, block: Block, parts: list[slice], at: Layout, n_split: int, n_whole: int, *tensors: Float
    ) -> Float:
        split, whole = tensors[:n_split], tensors[n_split : n_split + n_whole]
        ctx.block, ctx.parts, ctx.at, ctx.n_split = block, parts, at, n_split
        ctx.learned = tensors[n_split + n_whole :]
        ctx.random = (torch.get_rng_state(), *get_device_states(split[0]))  # for dropout
        ctx.save_for_backward(*split, *whole)
        out = whole[1].new_empty(*split[0].shape[:3], whole[1].shape[3])
        for part in parts:
            out[:, :, part] = block(tuple(x[:, :, part] for x in split), whole, at.tokens(part), part)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Float) -> tuple[Float | None, ...]:
        tensors = tuple(x.detach() for x in ctx.saved_tensors)
        split, whole = tensors[: ctx.n_split], tuple(x.requires_grad_() for x in tensors[ctx.n_split :])
        shared = (*whole, *ctx.learned)
        sums: list[Float | None] = [None] * len(shared)
        d_split = [torch.zeros_like(x) for x in split]
        cpu, devices, states = ctx.random
        with (
            torch.random.fork_rng(devices),
            torch.enable_grad(),
            torch.autocast(autocast_type(d_out.device), enabled=False),
        ):
            torch.set_rng_state(cpu)
            set_device_states(devices, states)
            for part in ctx.parts:
                here = tuple(x[:, :, part].requires_grad_() for x in split)
                out = ctx.block(here, whole, ctx.at.tokens(part), part)
                grads = torch.autograd.grad(out, (*here, *shared), d_out[:, :, part], allow_unused=True)
                for total, grad in zip(d_split, grads, strict=False):
                    total[:, :, part] = 0 if grad is None else grad
                for i, grad in enumerate(grads[len(split) :]):
                    if grad is not None:
                        so_far = sums[i] = torch.zeros_like(shared[i]) if sums[i] is None else sums[i]
                        assert so_far is not None
                        so_far += grad
        return None, None, None, None, None, *d_split, *sums


def flex(
    q: Float, k: Float, v: Float, position: PositionEncoding, at: Layout, k_at: Layout, settings: AttentionSettings
) -> Float:
    """FlexAttention on CUDA: the same mask and bias functions, called on one pair at a time inside the fused kernel."""
    from torch.nn.attention.flex_attention import create_block_mask

    B, _, T, _ = q.shape
    at, k_at = at.expand(B), k_at.expand(B)

    def mask_mod(b: Any, h: Any, i: Any, j: Any) -> Any:
        return sees(at.pair(b, i), k_at.pair(b, j), settings.causal, settings.window, settings.sink_tokens)

    def score_mod(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        return s + position.bias(h, at.pos[b, i], k_at.pos[b, j])

    mask = create_block_mask(mask_mod, B, None, T, k.shape[2], device=str(q.device))
    score = score_mod if position.acts == "score" else None
    return _flex_attention(q.device.type)(q, k, v, score_mod=score, block_mask=mask, scale=settings.scale_of(q))


@cache
def _flex_attention(device_type: str) -> Any:
    """Compiled where there is a fused kernel to compile to; on the CPU as it is (slow, for tests)."""
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention, dynamic=True) if device_type == "cuda" else flex_attention


__all__ = ["BLOCK", "blocked", "causal", "content", "flex", "plain"]
