"""Rows of learned tables, by distance: what methods with a vector for each distance share.

A vector per distance need never be copied to every pair of tokens: a query meets all rows of the table once, (T, N),
and each pair takes its number out of that; weights are added up by row before they meet the vectors of values.
"""

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


__all__ = ["collect", "gaps", "take"]
