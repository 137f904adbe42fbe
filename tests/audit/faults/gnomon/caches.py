"""Faults of the key/value cache."""

import importlib
from collections.abc import Sequence
from dataclasses import replace
from unittest.mock import patch

import torch

from faults.fault import Planting, fault, together
from gnomon.attention.attend import choose
from gnomon.attention.cache import Cache, GrowingCache, PreallocatedCache, RollingCache
from gnomon.attention.dense import AttentionSettings
from gnomon.audit.laws import caches, windows
from gnomon.audit.laws.gnomon import caches as own_caches
from gnomon.layout import Layout
from gnomon.positions import PositionEncoding
from gnomon.shapes import Float, Int

# `gnomon.attention.attend` is also the name of the function in it
attend = importlib.import_module("gnomon.attention.attend")


@fault("cache", caches.cached_is_full, under="none")
def the_newest_key_is_lost() -> Planting:
    """A growing cache stores every chunk but its last token's value."""

    def update(cache: GrowingCache, layer: int, k: Float, v: Float) -> tuple[Float, Float]:
        whole = healthy(cache, layer, k, v)
        stored = whole[1].clone()
        stored[:, :, -1] = 0
        cache._fresh[layer] = (whole[0], stored)
        return whole

    healthy = GrowingCache.update
    return patch.object(GrowingCache, "update", update)


@fault("cache", caches.chunks_are_whole, "rope", "none", "sinusoidal", "learned")
def causal_mask_from_the_top_left() -> Planting:
    """A chunk against a longer cache gets the triangle that starts at its first key."""

    def chosen(position: PositionEncoding, at: Layout, k_at: Layout, how: AttentionSettings, device: str) -> str:
        plain = at.kind == k_at.kind == "dense" and how.causal and how.window is None and position.acts != "score"
        return "causal" if plain else choose(position, at, k_at, how, device)

    return patch.object(attend, "choose", chosen)


@fault("cache", caches.reorder_is_rerun, caches.beam_with_cache_is_beam_without, under="rope")
def reorder_forgets_values() -> Planting:
    """Beams swap their keys and keep their values."""

    def reorder(cache: Cache, index: Int) -> None:
        values = {layer: v[torch.arange(len(index)) % len(v)] for layer, v in cache.v.items()}
        healthy(cache, index)
        cache.v = values

    healthy = Cache.reorder
    return patch.object(Cache, "reorder", reorder)


@fault("cache", caches.reorder_is_rerun)
def reorder_forgets_the_layout() -> Planting:
    """Beams swap keys and values and keep their padding and positions."""

    def reorder(cache: Cache, index: Int) -> None:
        at = cache.at
        healthy(cache, index)
        cache.at = None if at is None else at.rows(torch.arange(len(index)) % at.shape[0])

    healthy = Cache.reorder
    return patch.object(Cache, "reorder", reorder)


@fault("cache", own_caches.crop_is_never_read)
def crop_takes_one_length_for_all() -> Planting:
    """Going back per row goes back to the longest row's length."""

    def crop(cache: Cache, keep: int | Sequence[int] | Int) -> None:
        healthy(cache, int(torch.as_tensor(keep).max()))

    healthy = Cache.crop
    return patch.object(Cache, "crop", crop)


@fault("cache", own_caches.crop_is_never_read)
def crop_forgets_the_layout() -> Planting:
    """Keys and values go back, but what the cache says about its slots does not."""

    def keep_before(cache: Cache, keep: Int) -> None:
        held = cache.at
        healthy(cache, keep)
        if held is not None and cache.at is not None:
            cache.at = held.tokens(slice(0, len(cache)))

    healthy = Cache._keep_before
    return patch.object(Cache, "_keep_before", keep_before)


@fault("cache", windows.the_cache_keeps_the_window, window=3)
def rolling_cache_drops_one_too_many() -> Planting:
    """The update that reaches the window's edge drops one more token than it must."""

    def build(cache: RollingCache, window: int, rollback: int = 0, kept: int = 0) -> None:
        healthy(cache, max(1, window - 2), rollback, kept)

    healthy = RollingCache.__init__
    return patch.object(RollingCache, "__init__", build)


@fault("cache", windows.the_cache_keeps_the_window, window=3)
def ring_buffer_read_by_slot() -> Planting:
    """Keys and values are written round and round, and the layout takes them to be in time order."""

    def kept(cache: RollingCache, x: Float) -> Float:
        return healthy(cache, x).roll(1, 2)

    healthy = RollingCache._kept
    return patch.object(RollingCache, "_kept", kept)


@fault("cache", own_caches.a_failed_step_leaves_the_cache)
def keys_are_stored_before_the_step_ends() -> Planting:
    """Layers write into the cache at once, so a step that fails leaves half of itself there."""

    def extend(cache: Cache, at: Layout) -> Layout:
        cache.at = healthy(cache, at)
        return cache.at

    def update(cache: GrowingCache, layer: int, k: Float, v: Float) -> tuple[Float, Float]:
        if layer in cache.k:
            k, v = torch.cat([cache.k[layer], k], 2), torch.cat([cache.v[layer], v], 2)
        cache.k[layer], cache.v[layer] = k, v
        return k, v

    def update_state(cache: GrowingCache, layer: int, state: Float) -> Float:
        cache.state[layer] = state_healthy(cache, layer, state)
        return cache.state[layer]

    healthy, state_healthy = Cache.extend, GrowingCache.update_state
    return together(
        patch.object(GrowingCache, "extend", extend),
        patch.object(GrowingCache, "update", update),
        patch.object(GrowingCache, "rooms", lambda cache, layer: None),
        patch.object(GrowingCache, "update_state", update_state),
    )


@fault("cache", caches.cached_is_full)
def every_layer_shares_one_cache() -> Planting:
    """Layers write their keys and values under one key, so each reads those of the layer before it."""

    def update(cache: PreallocatedCache, layer: int, k: Float, v: Float) -> tuple[Float, Float]:
        return healthy(cache, 0, k, v)

    healthy = PreallocatedCache.update
    return patch.object(PreallocatedCache, "update", update)


@fault("cache", own_caches.packed_rows_and_rows_with_gaps_decode_in_place)
def decoding_joins_the_first_document() -> Planting:
    """Tokens decoded after packed documents are given to document 0."""

    def then(at: Layout, n: int) -> Layout:
        after = healthy(at, n)
        return after if after.doc is None else replace(after, doc=torch.zeros_like(after.doc))

    healthy = Layout.then
    return patch.object(Layout, "then", then)
