"""Faults about where tokens sit and who may see whom."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from unittest.mock import patch

import torch

from faults.fault import ABSOLUTE, POSITIONAL, Planting, fault
from gnomon import layout
from gnomon.audit.laws import caches, order, padding, windows
from gnomon.audit.laws.gnomon import encodings
from gnomon.audit.laws.gnomon import order as own_order
from gnomon.layout import Layout
from gnomon.shapes import Bool, Int


def _slots(at: Layout) -> Int:
    return torch.arange(at.shape[1]).expand(at.shape)


# -------------------------------------------------------------------- positions


@fault("position", padding.left_padding, *ABSOLUTE)
def left_padding_is_counted() -> Planting:
    """Positions are slot numbers, so a row padded on the left starts late."""
    healthy = Layout.padded

    def padded(mask: Bool) -> Layout:
        at = healthy(mask)
        return replace(at, pos=_slots(at))

    return patch.object(Layout, "padded", staticmethod(padded))


@fault("position", padding.interior_padding, *POSITIONAL, under="learned")
def holes_are_counted() -> Planting:
    """Padding inside a row pushes later tokens away."""
    healthy = Layout.padded

    def padded(mask: Bool) -> Layout:
        at = healthy(mask)
        first = at.real.int().argmax(1, keepdim=True)
        return replace(at, pos=(_slots(at) - first).clamp(min=0))

    return patch.object(Layout, "padded", staticmethod(padded))


@fault("position", padding.packed_is_separate, *ABSOLUTE, under="learned")
def packed_positions_never_restart() -> Planting:
    """The second document of a packed row goes on counting where the first one stopped."""
    healthy = Layout.packed

    def packed(lengths: Sequence[Sequence[int]]) -> Layout:
        at = healthy(lengths)
        return replace(at, pos=at.step)

    return patch.object(Layout, "packed", staticmethod(packed))


def _then(place: Callable[[Layout, Layout], Int]) -> Planting:
    """A patch of Layout.then whose positions are place(held, next)."""
    healthy = Layout.then

    def then(at: Layout, n: int) -> Layout:
        after = healthy(at, n)
        return replace(after, pos=place(at, after), kind="custom" if after.kind == "dense" else after.kind)

    return patch.object(Layout, "then", then)


@fault("position", caches.cached_is_full, *POSITIONAL, under="t5")
def every_step_at_position_0() -> Planting:
    """A decoded token is the first of its call, and sits at position 0."""
    return _then(lambda held, after: after.pos - after.pos[:, :1])


@fault("position", caches.cached_is_full, *POSITIONAL)
def decoding_skips_a_position() -> Planting:
    """The first decoded token sits one place too far."""
    return _then(lambda held, after: after.pos + 1)


@fault("position", caches.padded_rows_decode, *POSITIONAL)
def decoding_counts_slots() -> Planting:
    """A decoded token's position is the number of slots in the cache, padding included."""
    return _then(lambda held, after: held.shape[1] + _slots(after))


@fault("position", windows.the_cache_keeps_the_window, *POSITIONAL, window=3)
def evicted_tokens_are_not_counted() -> Planting:
    """After eviction a token sits at the number of tokens kept, not at its own place."""
    return _then(lambda held, after: torch.where(held.pos[:, :1] > 0, held.shape[1] + _slots(after), after.pos))


@fault("position", order.every_row_has_its_own_positions, under="rope")
def all_rows_take_the_first_row() -> Planting:
    """Tables are made from the positions of the batch's first row."""
    return patch.object(Layout, "one_row", lambda at: at.rows(torch.tensor([0])))


@fault("precision", encodings.positions_are_whole_and_exact)
def positions_in_float16() -> Planting:
    """Positions are held in float16, where 2048 and 2049 are one number."""
    return _dense_as(torch.float16)


@fault("precision", encodings.positions_are_whole_and_exact)
def positions_in_int16() -> Planting:
    """Positions are held in int16, which ends at 32 767."""
    return _dense_as(torch.int16)


def _dense_as(dtype: torch.dtype) -> Planting:
    healthy = Layout.dense

    def dense(B: int, T: int, device: torch.device | str | None = None) -> Layout:
        at = healthy(B, T, device)
        return replace(at, pos=at.pos.to(dtype).long())

    return patch.object(Layout, "dense", staticmethod(dense))


# -------------------------------------------------------------------- masks

Asked = tuple[Layout, Layout, bool, int | None]  #: what the mask is asked: q, k, causal, window


def _asked(change: Callable[[Layout, Layout, bool, int | None], Asked]) -> Planting:
    """A patch of the mask that changes what it is asked."""
    healthy = layout.sees

    def sees(q: Layout, k: Layout, causal: bool = True, window: int | None = None, sink_tokens: int = 0) -> Bool:
        return healthy(*change(q, k, causal, window), sink_tokens)

    return patch.object(layout, "sees", sees)


@fault("mask", padding.left_padding, under="alibi")
def padding_is_seen() -> Planting:
    """The padding mask is made and never used."""

    def bare(at: Layout) -> Layout:
        return at if at.kind == "packed" else replace(at, doc=None)

    return _asked(lambda q, k, causal, window: (bare(q), bare(k), causal, window))


@fault("mask", padding.right_padding, under="rope", causal=False)
def padding_after_the_text_is_seen() -> Planting:
    """Only padding before the text is masked; behind it the causal mask is trusted, which an encoder has not."""
    return _padded_as(lambda real: real.int().cumsum(1) > 0)


@fault("mask", padding.interior_padding)
def text_runs_from_first_to_last_token() -> Planting:
    """A row is taken to be one stretch, so holes inside it are seen."""
    return _padded_as(lambda real: (real.int().cumsum(1) > 0) & (real.int().flip(1).cumsum(1).flip(1) > 0))


def _padded_as(seen: Callable[[Bool], Bool]) -> Planting:
    healthy = Layout.padded

    def padded(mask: Bool) -> Layout:
        at = healthy(mask)
        return replace(at, doc=torch.where(seen(at.real), 0, -1))

    return patch.object(Layout, "padded", staticmethod(padded))


@fault("mask", padding.packed_is_separate, under="rope")
def documents_leak() -> Planting:
    """Positions restart with each packed document, but attention runs across them."""

    def merged(at: Layout) -> Layout:
        return at if at.doc is None else replace(at, doc=at.doc.clamp(max=0))

    return _asked(lambda q, k, causal, window: (merged(q), merged(k), causal, window))


@fault("mask", own_order.influence_is_visibility)
def documents_see_their_neighbour() -> Planting:
    """The comparison of documents is off by one at their edges."""

    def shifted(at: Layout) -> Layout:
        return at if at.doc is None else replace(at, doc=torch.where(at.real, at.doc // 2, -1))

    return _asked(lambda q, k, causal, window: (shifted(q), shifted(k), causal, window))


@fault("mask", order.causality, own_order.influence_is_visibility, under="alibi", window=6)
def one_token_ahead() -> Planting:
    """The causal comparison lets a query see the next token."""
    return _asked(lambda q, k, causal, window: (replace(q, step=q.step + causal), k, causal, window))


@fault("mask", order.causality, own_order.influence_is_visibility, under="alibi", window=6)
def mask_upside_down() -> Planting:
    """True means "blocked" where it should mean "may be seen"."""
    healthy = layout.sees

    def sees(q: Layout, k: Layout, causal: bool = True, window: int | None = None, sink_tokens: int = 0) -> Bool:
        return ~healthy(q, k, causal, window, sink_tokens)

    return patch.object(layout, "sees", sees)


@fault("mask", own_order.influence_is_visibility)
def prefix_is_causal() -> Planting:
    """The tokens of a bidirectional prefix look back only."""
    healthy = Layout.prefix

    def prefix(n: int | Sequence[int], T: int) -> Layout:
        at = healthy(n, T)
        return replace(at, step=at.pos)

    return patch.object(Layout, "prefix", staticmethod(prefix))


@fault("window", windows.a_window_is_as_wide_as_it_says, own_order.influence_is_visibility, under="rope", window=3)
def window_one_too_wide() -> Planting:
    """`gap <= window`: the token itself is not counted."""
    return _asked(lambda q, k, causal, window: (q, k, causal, window and window + 1))


@fault("window", windows.a_window_is_as_wide_as_it_says, own_order.influence_is_visibility, window=3)
def window_one_too_narrow() -> Planting:
    """`gap < window - 1`: the token itself is counted twice."""
    return _asked(lambda q, k, causal, window: (q, k, causal, window and window - 1))


@fault("window", padding.interior_padding, window=3)
def windows_count_padding() -> Planting:
    """Windows are measured in slots of memory, so padding takes places away from tokens."""
    healthy = Layout.padded

    def padded(mask: Bool) -> Layout:
        at = healthy(mask)
        return replace(at, step=_slots(at))

    return patch.object(Layout, "padded", staticmethod(padded))
