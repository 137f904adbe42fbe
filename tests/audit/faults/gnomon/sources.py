"""Faults of cross-attention, and of the ways to shape scores."""

import importlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import torch

from faults.fault import BY_DISTANCE, Planting, fault
from gnomon.attention import Cache, CrossAttention, Memory, MultiHeadAttention, RollingCache, cross
from gnomon.attention.attend import KERNELS
from gnomon.attention.dense import AttentionSettings
from gnomon.audit.laws import caches, sources
from gnomon.audit.laws.gnomon import kernels as own_kernels
from gnomon.audit.laws.gnomon import sources as own_sources
from gnomon.layout import Layout
from gnomon.models import EncoderDecoder, ModelConfig
from gnomon.positions import ALiBi
from gnomon.shapes import Bool, Float, Int

# Functions of the package have these names too and hide the modules.
attend = importlib.import_module("gnomon.attention.attend")
spec = importlib.import_module("gnomon.attention.dense")

# -------------------------------------------------------------------- cross-attention


@fault("source", sources.source_padding_on_the_right, under="rope", architecture="encoder-decoder")
def the_padding_of_the_source_is_seen() -> Planting:
    """The encoder hides its padding, but cross-attention is not told where it is."""
    healthy = CrossAttention.forward

    def forward(self: CrossAttention, x: Float, at: Layout, memory: Memory, *rest: Any) -> Float:
        everywhere = replace(memory.at, doc=torch.zeros_like(memory.at.pos), kind="custom")
        return healthy(self, x, at, Memory(memory.states, everywhere), *rest)

    return patch.object(CrossAttention, "forward", forward)


@fault("source", own_sources.source_padding_gets_no_gradient)
def the_encoder_is_not_told_of_padding() -> Planting:
    """The mask of the source reaches cross-attention, but not the encoder."""
    healthy = EncoderDecoder.encode

    def encode(self: EncoderDecoder, source: Int, at: Layout | None = None, *rest: Any) -> Memory:
        memory = healthy(self, source, None, *rest)
        return memory if at is None else Memory(memory.states, at)

    return patch.object(EncoderDecoder, "encode", encode)


@fault("source", own_sources.a_source_is_read_both_ways)
def the_source_is_read_forwards_only() -> Planting:
    """One mask serves both stacks, and it is the decoder's."""
    healthy = EncoderDecoder.build

    def build(self: EncoderDecoder, config: ModelConfig) -> None:
        healthy(self, config)
        for part in self.encoder.modules():
            if isinstance(part, MultiHeadAttention):
                part.settings = replace(part.settings, causal=True)

    return patch.object(EncoderDecoder, "build", build)


@fault("source", sources.the_source_is_seen_through_the_cache, architecture="encoder-decoder")
def all_layers_recall_the_first_ones_keys() -> Planting:
    """Keys and values of the source are kept once for the model, not once for every layer."""
    healthy = Cache.recall

    def recall(self: Cache, layer: int, make: Callable[[], tuple[Float, Float]]) -> tuple[Float, Float]:
        return healthy(self, 0, make)

    return patch.object(Cache, "recall", recall)


@fault("source", caches.reorder_is_rerun, under="rope", architecture="encoder-decoder")
def beams_forget_whose_source_they_read() -> Planting:
    """`reorder` moves a row's own keys and leaves those of its source where they are."""
    healthy = Cache.reorder

    def reorder(self: Cache, index: Int) -> None:
        memory, recalled, self.memory = self.memory, self._recalled, None
        healthy(self, index)
        rows = torch.arange(len(index)) % (1 if memory is None else len(memory.states))
        self.memory = None if memory is None else memory.rows(rows)
        self._recalled = {n: (k[rows], v[rows]) for n, (k, v) in recalled.items()}

    return patch.object(Cache, "reorder", reorder)


@fault("source", own_sources.cross_attention_has_no_distance, "rope", "t5", "alibi")
def cross_attention_measures_distances() -> Planting:
    """The bias of self-attention is added in cross-attention too, between places in two different texts."""
    return patch.object(cross, "NOTHING", ALiBi(n_heads=4, causal=False))


# -------------------------------------------------------------------- caps, sinks, norms, kept tokens


@fault("scores", own_kernels.every_kernel_is_dense_forward)
def a_fast_kernel_forgets_the_cap() -> Planting:
    """Scores are capped where weights are drawn, but the kernel that runs knows no cap."""
    healthy = KERNELS["content"]

    def content(q: Float, k: Float, v: Float, position: Any, at: Layout, k_at: Layout, how: AttentionSettings) -> Float:
        return healthy(q, k, v, position, at, k_at, replace(how, softcap=None))

    return patch.dict(KERNELS, content=content)


@fault("scores", own_kernels.every_kernel_is_dense_backward)
def sinks_are_never_trained() -> Planting:
    """The fast path takes a copy of the sinks, which gets no gradient."""
    healthy = KERNELS["content"]

    def content(q: Float, k: Float, v: Float, position: Any, at: Layout, k_at: Layout, how: AttentionSettings) -> Float:
        sinks = None if how.sinks is None else how.sinks.detach()
        return healthy(q, k, v, position, at, k_at, replace(how, sinks=sinks))

    return patch.dict(KERNELS, content=content)


@fault("scores", own_kernels.attention_is_its_equation)
def the_sink_takes_no_share() -> Planting:
    """Weights are normed among themselves, as if there were no sink."""
    healthy = spec.masked_softmax

    def softmax(s: Float, ok: Bool, sink: Float | None = None) -> Float:
        return healthy(s, ok)

    return patch.object(spec, "masked_softmax", softmax)


@fault("scores", own_kernels.attention_is_its_equation)
def queries_are_not_normed() -> Planting:
    """Keys are normed over the width of a head, queries are forgotten."""
    return patch.object(MultiHeadAttention, "queries", lambda self, x: self._heads(self.q(x), self.n_heads))


@fault("cache", caches.cached_is_full, window=3, sink_tokens=1)
def kept_tokens_roll_out_of_the_cache() -> Planting:
    """The mask keeps the first tokens visible, but the rolling cache drops them."""
    return patch.object(RollingCache, "_is_sink", lambda self, whole: torch.zeros_like(whole.real))


@fault("window", own_kernels.every_kernel_is_dense_forward, *BY_DISTANCE)
def a_fast_kernel_drops_the_kept_tokens() -> Planting:
    """The mask is built from distances alone, in which the first tokens are no exception."""
    healthy = attend.choose

    def choose(position: Any, at: Layout, k_at: Layout, how: AttentionSettings, device: str) -> str:
        return healthy(position, at, k_at, replace(how, sink_tokens=0), device)

    return patch.object(attend, "choose", choose)
