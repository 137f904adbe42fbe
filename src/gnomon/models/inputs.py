"""resolve_layout: where the ids of one call sit, checked against the cache; pad_rows: uneven rows as one batch."""

from collections.abc import Sequence

import torch

from gnomon.attention import Cache
from gnomon.embed.table import check_shape
from gnomon.errors import BadValue, must_be
from gnomon.layout import ORDERED, Layout, layout_of
from gnomon.shapes import Int


def resolve_layout(ids: Int, at: Layout | None, cache: Cache | None) -> Layout:
    """The Layout of these ids: the given one, stretched over the batch, or the natural one. Raises BadValue where a
    given one does not continue what the cache holds."""
    check_shape(ids)
    must_be("cache", cache, Cache | None, "model.cache() makes one; a mask is no cache: at=gn.Layout.padded(mask)")
    held = None if cache is None else cache.at
    if at is None:
        return Layout.dense(ids.shape[0], ids.shape[1], ids.device) if held is None else held.then(ids.shape[1])
    at = layout_of(at, ids.shape[0], ids.shape[1], ids.device)
    if held is not None and not torch.compiler.is_compiling():
        last = torch.where(held.real, held.step, -1).amax(1)
        first = torch.where(at.real, at.step, last[:, None] + 1).amin(1)
        ordered = held.kind in ORDERED and at.kind in ORDERED
        late = (first != last + 1) if ordered else (first <= last)
        if bool(late.any()):
            row = int(late.nonzero()[0])
            raise BadValue(
                f"row {row}: the cache holds tokens up to step {int(last[row])}, but the new ones start at step "
                f"{int(first[row])}. Leave the layout out, or take cache.then(n); a prefix cannot be split"
            )
    return at


def pad_rows(rows: Sequence[Sequence[int]], fill: int = 0) -> tuple[Int, Layout | None]:
    """Rows of ids as (B, T), `fill` on the right of shorter ones, and where they sit; None where all are alike."""
    lengths = torch.tensor([len(row) for row in rows])
    T = int(lengths.max())
    ids = torch.tensor([[*row, *[fill] * (T - len(row))] for row in rows])
    real = torch.arange(T) < lengths[:, None]
    return ids, None if bool(real.all()) else Layout.padded(real)


__all__ = ["pad_rows", "resolve_layout"]
