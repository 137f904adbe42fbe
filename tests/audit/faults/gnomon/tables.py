"""Faults of position vectors, of tables that end, and of biases."""

import math
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.nn import functional as F

from faults.fault import Planting, fault, together
from gnomon.attention import kernels
from gnomon.audit.laws import limits, order, padding
from gnomon.audit.laws.gnomon import caches as own_caches
from gnomon.audit.laws.gnomon import kernels as own_kernels
from gnomon.audit.laws.gnomon import order as own_order
from gnomon.audit.laws.gnomon import published
from gnomon.embed.input import InputLayer
from gnomon.layout import Layout
from gnomon.positions import T5, ALiBi, Learned, PositionEncoding, Sinusoidal
from gnomon.shapes import Float, Int

# -------------------------------------------------------------------- sinusoidal and learned vectors


@fault("sinusoid", published.as_published, "sinusoidal")
def the_exponent_is_doubled() -> Planting:
    """The channel's number is used where the pair's is meant, so sine and cosine of a pair turn differently."""

    def vectors(self: Sinusoidal, at: Layout, dtype: torch.dtype = torch.float32) -> Float:
        channel = torch.arange(self.d_model, dtype=torch.float64)
        a = at.pos.unsqueeze(-1) * torch.pow(self.base, -2 * channel / self.d_model)
        return torch.where(channel % 2 == 0, a.sin(), a.cos()).to(dtype)

    return patch.object(Sinusoidal, "vectors", vectors)


@fault("sinusoid", published.as_published, "sinusoidal")
def the_tables_layout_is_ignored() -> Planting:
    """Sines and cosines are interleaved where a checkpoint wants them side by side."""
    healthy = Sinusoidal.vectors

    def vectors(self: Sinusoidal, at: Layout, dtype: torch.dtype = torch.float32) -> Float:
        return healthy(Sinusoidal(self.d_model, self.base), at, dtype)

    return patch.object(Sinusoidal, "vectors", vectors)


@fault("sinusoid", published.as_published, "sinusoidal")
def odd_widths_lose_a_channel() -> Planting:
    """With an odd width the last sine has no cosine, and both are left out."""
    healthy = Sinusoidal.vectors

    def vectors(self: Sinusoidal, at: Layout, dtype: torch.dtype = torch.float32) -> Float:
        rows = healthy(self, at, dtype)
        return F.pad(rows[..., :-1], (0, 1)) if self.d_model % 2 else rows

    return patch.object(Sinusoidal, "vectors", vectors)


@fault("table", own_caches.a_step_past_the_table_leaves_the_cache, "learned")
def the_bound_counts_new_tokens_only() -> Planting:
    """How many tokens come is checked, not where they sit, and with a cache positions wrap around."""

    def check(self: Learned, at: Layout) -> None:
        healthy(self, Layout.dense(*at.shape))

    def vectors(self: Learned, at: Layout, dtype: torch.dtype = torch.float32) -> Float:
        return self.weight[at.pos % self.max_positions]

    healthy = Learned.check
    return together(patch.object(Learned, "check", check), patch.object(Learned, "vectors", vectors))


@fault("table", limits.past_the_table_is_an_error, "learned")
def past_the_table_the_last_row_repeats() -> Planting:
    """Positions past a learned table are clamped to its last row, without a word."""

    def vectors(self: Learned, at: Layout, dtype: torch.dtype = torch.float32) -> Float:
        return self.weight[at.pos.clamp(0, self.max_positions - 1)]

    return together(patch.object(Learned, "check", lambda self, at: None), patch.object(Learned, "vectors", vectors))


@fault("position", order.order_is_seen, "learned", "sinusoidal", causal=False)
def position_is_built_and_forgotten() -> Planting:
    """The encoding exists, is counted and saved, and is never added."""
    healthy = InputLayer.forward

    def forward(self: InputLayer, ids: Int, *rest: Any, **more: Any) -> Float:
        with patch.object(self, "position", None):
            return healthy(self, ids, *rest, **more)

    return patch.object(InputLayer, "forward", forward)


def _left_behind() -> Planting:
    """Absolute position vectors are added under every encoding."""
    healthy = InputLayer.forward

    def forward(self: InputLayer, ids: Int, at: Layout | None = None, *rest: Any, **more: Any) -> Float:
        x = healthy(self, ids, at, *rest, **more)
        absolute: Float = Sinusoidal(x.shape[-1])(torch.zeros_like(x), at)
        return x + absolute

    return patch.object(InputLayer, "forward", forward)


@fault("table", order.shift, "t5", "rope", "alibi")
def an_absolute_table_stays_under_a_relative_encoding() -> Planting:
    """Choosing a relative encoding leaves the absolute one in place."""
    return _left_behind()


@fault("table", own_order.permutation_equivariance_without_position, "none", causal=False)
def an_absolute_table_stays_without_position() -> Planting:
    """Choosing no position leaves an absolute encoding in place."""
    return _left_behind()


# -------------------------------------------------------------------- biases


@fault("bias", published.as_published, "alibi")
def one_geometric_series_for_any_head_count() -> Planting:
    """Slopes 2^(-8 (h+1) / H) also where H is not a power of two."""
    return patch.object(ALiBi, "slope", lambda self, h: torch.exp2(-8 * (h + 1) / self.n_heads))


@fault("bias", published.as_published, "alibi")
def slopes_begin_at_1() -> Planting:
    """The exponent counts heads from 0, so the first slope is 1 instead of 2^(-8/H)."""
    healthy = ALiBi.slope
    return patch.object(ALiBi, "slope", lambda self, h: healthy(self, h) * 2 ** (8 / self.n_heads))


@fault("bias", published.as_published, "alibi")
def keys_ahead_are_rewarded() -> Planting:
    """The causal shortcut -m (i - j) is used in a bidirectional model, where it grows with every key ahead."""
    return patch.object(ALiBi, "bias", lambda self, h, q, k: -self.slope(h) * (q - k))


@fault("precision", published.as_published, "alibi")
def slopes_in_bfloat16() -> Planting:
    """Slope and distance are rounded to bfloat16: neighbours far away fall together."""

    def bias(self: ALiBi, h: Tensor, q: Int, k: Int) -> Float:
        return -self.slope(h).bfloat16().float() * (q - k).abs().bfloat16().float()

    return patch.object(ALiBi, "bias", bias)


@fault("precision", own_kernels.half_precision_keeps_far_biases, "alibi")
def the_bias_takes_the_models_dtype() -> Planting:
    """The bias is right, and is then rounded with the scores it is added to."""
    return patch.object(kernels, "position_dtype", lambda dtype: dtype)


@fault("kernel", own_kernels.one_pair_is_one_entry, "alibi")
def distance_is_measured_from_the_last_query() -> Planting:
    """-m (n - j) with n the newest query: the same softmax in a dense kernel, another number pair by pair."""
    return patch.object(ALiBi, "bias", lambda self, h, q, k: -self.slope(h) * (q.max() - k).abs())


@fault("bias", padding.interior_padding, "alibi", "t5")
def distance_is_counted_in_slots() -> Planting:
    """The bias reads slot numbers, padding included, instead of positions."""
    healthy = PositionEncoding.bias_tensor

    def by_slot(at: Layout) -> Layout:
        return at._map(lambda x: torch.arange(at.shape[1]).expand(at.shape))

    def bias_tensor(
        self: PositionEncoding, q: Layout, k: Layout | None = None, *rest: Any, **more: Any
    ) -> Float | None:
        if q.kind != "padded":
            return healthy(self, q, k, *rest, **more)
        return healthy(self, by_slot(q), None if k is None else by_slot(k), *rest, **more)

    return patch.object(PositionEncoding, "bias_tensor", bias_tensor)


@fault("bias", published.as_published, "t5")
def decoder_buckets_in_an_encoder() -> Planting:
    """The causal bucket map in a bidirectional model: all keys ahead share bucket 0."""
    healthy = T5.bucket

    def bucket(self: T5, gap: Int) -> Int:
        with patch.object(self, "causal", True):
            return healthy(self, gap)

    return patch.object(T5, "bucket", bucket)


@fault("bias", published.as_published, "t5")
def buckets_look_the_other_way() -> Planting:
    """Query - key where key - query is meant."""
    healthy = T5.bucket
    return patch.object(T5, "bucket", lambda self, gap: healthy(self, -gap))


@fault("bias", published.as_published, "t5")
def bucket_edges_fall_to_rounding() -> Planting:
    """Logarithms in float32: distances on a boundary fall one bucket short."""

    def bucket(self: T5, gap: Int) -> Int:
        n = self.n_buckets if self.causal else self.n_buckets // 2
        exact, back = n // 2, (-gap).clamp(min=0) if self.causal else gap.abs()
        ratio = (back.clamp(min=1) / exact).float().log2() / math.log2(self.max_distance / exact)
        far = (exact + (ratio * (n - exact)).long()).clamp(max=n - 1)
        return (0 if self.causal else (gap > 0) * n) + torch.where(back < exact, back, far)

    return patch.object(T5, "bucket", bucket)
