"""Faults of attention, its kernels and the norms around it."""

import importlib
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import torch
from torch import nn

from faults.fault import BY_DISTANCE, FOR_NAN, Planting, fault, together
from gnomon.attention import KERNELS, MultiHeadAttention, distances
from gnomon.attention.dense import AttentionSettings, dense
from gnomon.audit.laws import embedding, history, order, padding
from gnomon.audit.laws.gnomon import caches as own_caches
from gnomon.audit.laws.gnomon import history as own_history
from gnomon.audit.laws.gnomon import kernels as own_kernels
from gnomon.audit.laws.gnomon import order as own_order
from gnomon.blocks import residual
from gnomon.layout import Layout
from gnomon.positions import PositionEncoding
from gnomon.shapes import Bool, Float

attend = importlib.import_module("gnomon.attention.attend")
spec = importlib.import_module("gnomon.attention.dense")


# -------------------------------------------------------------------- heads, scale, dropout


@fault("heads", own_kernels.grouped_heads_are_copied_heads)
def shared_heads_are_tiled() -> Planting:
    """Key/value heads serve a, b, a, b where neighbours should share: a, a, b, b."""
    return patch.object(attend, "share_heads", lambda x, n_heads: x.repeat(1, n_heads // x.shape[1], 1, 1))


@fault("scale", own_kernels.attention_is_its_equation)
def scores_are_scaled_twice() -> Planting:
    """Queries are divided by sqrt(C) and the kernel divides again."""
    healthy = MultiHeadAttention.queries
    return patch.object(MultiHeadAttention, "queries", lambda self, x: healthy(self, x) * self.d_head**-0.5)


@fault("dropout", embedding.dropout_acts_once, history.evaluation_is_deterministic, under="alibi", dropout=0.2)
def dropout_never_stops() -> Planting:
    """Attention goes on dropping weights in evaluation mode."""
    healthy = MultiHeadAttention.train
    return patch.object(MultiHeadAttention, "train", lambda self, mode=True: healthy(self, True))


@fault("dropout", own_history.training_is_evaluation_without_dropout)
def evaluation_zeroes_padded_slots() -> Planting:
    """A shortcut for evaluation gives padded slots other values than training does."""
    healthy = MultiHeadAttention.forward

    def forward(self: MultiHeadAttention, x: Float, position: Any, tables: Any, at: Layout, *rest: Any) -> Float:
        out = healthy(self, x, position, tables, at, *rest)
        return out if self.training else out.masked_fill(~at.real[..., None], 0.0)

    return patch.object(MultiHeadAttention, "forward", forward)


@fault("mask", own_order.influence_is_visibility, causal=False)
def the_encoder_is_causal() -> Planting:
    """The setting causal=False is accepted and then forgotten."""
    healthy = MultiHeadAttention.__init__

    def build(self: MultiHeadAttention, *sizes: Any, **options: Any) -> None:
        healthy(self, *sizes, **{**options, "causal": True})

    return patch.object(MultiHeadAttention, "__init__", build)


# -------------------------------------------------------------------- masked softmax


def _everywhere(softmax: Any) -> Planting:
    """Every kernel becomes the dense one, with this softmax."""
    slow = dict.fromkeys(KERNELS, dense)
    return together(patch.object(spec, "masked_softmax", softmax), patch.dict(KERNELS, slow))


@fault("empty row", padding.an_empty_row_is_harmless, under="alibi")
def an_empty_row_is_nan() -> Planting:
    """Softmax over nothing but -inf is 0/0."""
    return _everywhere(lambda s, ok, sink: s.masked_fill(~ok, float("-inf")).softmax(-1))


@fault("empty row", own_kernels.nothing_seen_is_0)
def an_empty_row_is_the_mean() -> Planting:
    """Masked scores get the lowest finite number: where all are masked, all are seen alike."""
    return _everywhere(lambda s, ok, sink: s.masked_fill(~ok, torch.finfo(s.dtype).min).softmax(-1))


@fault("gradient", padding.masked_tokens_get_no_gradient, order.causality, under="rope")
def weights_are_masked_after_the_softmax() -> Planting:
    """Hidden keys get weight 0 but stay in the denominator, and get gradient through it."""

    def softmax(s: Float, ok: Bool, sink: Float | None) -> Float:
        return s.softmax(-1) * ok

    return _everywhere(softmax)


@fault("garbage", own_kernels.garbage_in_masked_slots, *FOR_NAN)
def padded_slots_keep_their_garbage() -> Planting:
    """Weights of padded slots are 0, but 0 * NaN is NaN: what stands there is never cleared."""
    return patch.object(attend, "_zero_padding", lambda x, at: x)


@fault("garbage", own_caches.garbage_in_empty_slots, *FOR_NAN)
def only_left_padding_is_cleared() -> Planting:
    """Slots cut out of a cache keep what they held."""

    def cleared(x: Float, at: Layout) -> Float:
        leading = at.real.int().cumsum(1) == 0
        return x.masked_fill(leading[:, None, :, None], 0.0)

    return patch.object(attend, "_zero_padding", cleared)


# -------------------------------------------------------------------- kernels


@fault("kernel", own_kernels.every_kernel_is_dense_forward, *BY_DISTANCE)
def distances_run_the_wrong_way() -> Planting:
    """The Toeplitz view is read without flipping the queries."""

    def toeplitz(
        q: Float, k: Float, v: Float, position: PositionEncoding, at: Layout, k_at: Layout, how: AttentionSettings
    ) -> Float:
        return distances.toeplitz(q.flip(2), k, v, position, at, k_at, how).flip(2)

    return patch.dict(KERNELS, toeplitz=toeplitz)


@fault("kernel", own_kernels.every_kernel_is_dense_forward, *BY_DISTANCE)
def a_fast_kernel_ignores_the_window() -> Planting:
    """The fast path has no argument for the window, and nobody noticed."""

    def toeplitz(
        q: Float, k: Float, v: Float, position: PositionEncoding, at: Layout, k_at: Layout, how: AttentionSettings
    ) -> Float:
        return distances.toeplitz(q, k, v, position, at, k_at, replace(how, window=None, sink_tokens=0))

    return patch.dict(KERNELS, toeplitz=toeplitz)


@fault("kernel", own_kernels.every_kernel_is_dense_forward, "alibi", "t5")
def the_bias_is_scaled_with_the_scores() -> Planting:
    """The mask handed to a fused kernel carries the bias before the scale."""
    healthy = PositionEncoding.add_bias
    return patch.object(PositionEncoding, "add_bias", lambda self, *given: healthy(self, *given) * 0.35)


@fault("gradient", own_kernels.every_kernel_is_dense_backward, "t5")
def a_learned_bias_gets_no_gradient() -> Planting:
    """The fused kernel takes the bias as a constant."""
    healthy = distances.distance_vector
    return patch.object(distances, "distance_vector", lambda *given: healthy(*given).detach())


# -------------------------------------------------------------------- norms


class _NormOver(nn.Module):
    """Normalises over the given axes of (B, T, D)."""

    def __init__(self, axes: tuple[int, ...]) -> None:
        super().__init__()
        self.axes = axes

    def forward(self, x: Float) -> Float:
        var, mean = torch.var_mean(x, self.axes, keepdim=True, correction=0)
        return (x - mean) * (var + 1e-5).rsqrt()


@fault("norm", order.causality, own_order.influence_is_visibility, under="none")
def the_norm_sees_the_whole_row() -> Planting:
    """Mean and variance are taken over tokens too, those to come included."""
    return patch.object(residual, "build_norm", lambda *sizes: _NormOver((1, 2)))


@fault("norm", padding.batch_mates, under="rope")
def the_norm_sees_the_batch() -> Planting:
    """Mean and variance are taken over the rows of the batch."""
    return patch.object(residual, "build_norm", lambda *sizes: _NormOver((0, 2)))
