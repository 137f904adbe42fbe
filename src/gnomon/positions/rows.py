"""Rows of learned tables, by distance: what methods with a vector for each distance share.

A vector per distance need never be copied to every pair of tokens: a query meets all rows of the table once, (T, N),
and each pair takes its number out of that; weights are added up by row before they meet the vectors of values. Where
positions count up by one, each query meets the vectors of all distances at once, and its numbers are its neighbour's
but for a shift: one product and a view (Transformer-XL, arXiv:1901.02860, appendix B), and no number is taken alone.
"""

import torch
from torch.nn import functional as F

from gnomon.layout import Layout
from gnomon.shapes import Float, Int


def gaps(q: Layout, k: Layout) -> Int:
    """(B or 1, 1, T, S) the position of each key less that of the query, rounded; 1 where all rows are alike."""
    gap = k.one_row().pos[:, None, None, :] - q.one_row().pos[:, None, :, None]
    return gap.round().long() if gap.is_floating_point() else gap


def take(x: Float, row: Int) -> Float:
    """x (B, H, T, N), row (B or 1, 1, T, S) -> (B, H, T, S): of every query the number in the row of each key."""
    return x.gather(-1, row.expand(*x.shape[:-1], row.shape[-1]))


def collect(p: Float, row: Int, n: int) -> Float:
    """p (B, H, T, S), row (B or 1, 1, T, S) -> (B, H, T, n): of every query the sum over the keys of each row."""
    return p.new_zeros(*p.shape[:-1], n).scatter_add(-1, row.expand(p.shape), p)


def straight(q: Layout, k: Layout, lag: int | None) -> Int | None:
    """(T + S - 1,) each position of a key less that of a query once, rising, where positions count up by one and `lag`
    keys follow that of the last query; None elsewhere, and for one query, which meets no distance twice."""
    (_, T), (_, S) = q.shape, k.shape
    if lag is None or T == 1 or not q.kind == k.kind == "dense":
        return None
    return torch.arange(1 - S + lag, T + lag, device=q.device)


def skewed(x: Float, S: int) -> Float:
    """x (..., T, T + S - 1) by distance, as of `straight` -> (..., T, S) by key: T - 1 - i + j of query i, key j."""
    T, N = x.shape[-2:]
    if T == 1:
        return x
    return x.flatten(-2)[..., T - 1 : T - 1 + T * (N - 1)].view(*x.shape[:-1], N - 1)[..., :S]


def spread(p: Float) -> Float:
    """p (..., T, S) by key -> (..., T, T + S - 1) by distance, 0 where a query has no key: the opposite of `skewed`."""
    T = p.shape[-2]
    if T == 1:
        return p
    return F.pad(F.pad(p, (0, T - 2)).flatten(-2), (T - 1, 1)).view(*p.shape[:-1], p.shape[-1] + T - 1)


def by_key(k: Float, vectors: Float, T: int) -> Float:
    """Keys k (B, H, S, C) with the vectors (1, H, T + S - 1, C) of their distances to T queries: (B, H, T, S).

    In parts of T keys, which meet 2 T - 1 vectors.
    """
    S = k.shape[2]
    parts = [slice(i, min(i + T, S)) for i in range(0, S, T)]
    met = [
        skewed(k[:, :, part] @ vectors[:, :, part.start : part.stop + T - 1].flip(2).transpose(-1, -2), T)
        for part in parts
    ]
    return torch.cat(met, 2).transpose(-1, -2)


__all__ = ["by_key", "collect", "gaps", "skewed", "spread", "straight", "take"]
