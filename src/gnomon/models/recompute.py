"""Reading again: what a cache must do when a text outgrows the table of positions that it was read with.

Dynamic NTK and LongRoPE have other frequencies for longer texts. Keys in a cache were made from states that the old
ones gave, in every layer but the first, so turning them once more would not be exact. The text is read again instead,
under the table that it has now: LongRoPE once, dynamic NTK at every step past the trained length. The same is done
where a recipe for position ids moves what was read before (`Randomized(reading="sampled")`).
"""

from collections.abc import Iterable
from dataclasses import replace

import torch

from gnomon.attention import Cache
from gnomon.layout import Layout
from gnomon.positions import PositionEncoding, PositionIds
from gnomon.shapes import Int


def history(
    cache: Cache, ids: Int, at: Layout, encodings: Iterable[PositionEncoding], recipe: PositionIds | None = None
) -> tuple[Int, Layout] | None:
    """All ids that the rows have read with these, and where they sit now; None where no encoding asks for lengths, and
    no recipe for what was read before."""
    by_text = recipe if recipe is not None and recipe.in_reading else None
    if by_text is None and not any(position.regime(at) is not None for position in encodings):
        return None
    if cache.history is not None:
        before, held = cache.history
        ids, at = torch.cat([before, ids], 1), extend_layout(held, at)
    return ids, at if by_text is None else by_text.read(ids, at)


def extend_layout(held: Layout, at: Layout) -> Layout:
    """Both layouts side by side; tokens of a text that goes on are told its new length."""
    both = held.cat(at)
    if both.kind == "dense":
        return both
    length = torch.where(at.real, at.length, 0).amax(1, keepdim=True)  # 0 in a row that does not go on
    goes_on = (length > 0).expand_as(both.length)
    if both.doc is not None and at.doc is not None:
        goes_on = goes_on & (both.doc == at.doc.amax(1, keepdim=True))
    return replace(both, length=torch.where(goes_on, length, both.length))


def is_outdated(cache: Cache, now: Layout, encodings: Iterable[PositionEncoding]) -> bool:
    """Whether some held token's position, or its table of positions, is another one now than when it was read."""
    if cache.history is None:
        return False
    _, held = cache.history
    n = held.shape[1]
    if bool(((held.pos != now.pos[:, :n]) & held.real).any()):
        return True
    for position in encodings:
        old, new = position.regime(held), position.regime(now)
        if old is not None and new is not None and bool(((old != new[:, :n]) & held.real).any()):
            return True
    return False


__all__ = ["extend_layout", "history", "is_outdated"]
