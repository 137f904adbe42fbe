"""Faults of rotations, of the precision of positions, and of encodings that remember."""

from functools import wraps
from typing import Any
from unittest.mock import patch

import torch

from faults.fault import POSITIONAL, Planting, fault, together
from gnomon import positions
from gnomon.audit.laws import history, order, precision
from gnomon.audit.laws.gnomon import encodings, published
from gnomon.audit.laws.gnomon import history as own_history
from gnomon.layout import Layout
from gnomon.models import DecoderOnly
from gnomon.models.inputs import resolve_layout
from gnomon.positions import PositionEncoding, RoPE, Sinusoidal, rope, sinusoidal
from gnomon.positions.base import Tables, position_dtype
from gnomon.shapes import Float, Int

# -------------------------------------------------------------------- rotations


@fault("rotation", order.shift, "rope")
def keys_are_not_rotated() -> Planting:
    """Queries turn with their position, keys do not."""
    return patch.object(RoPE, "key", lambda self, k, tables: k)


def _other(self: RoPE) -> RoPE:
    """The same rotation with the other pairing."""
    pairing: rope.Pairing = "interleaved" if self.pairing == "half" else "half"
    return RoPE(self.d_head, self.base, pairing, self.rotary_dim)


@fault("rotation", order.shift, "rope")
def pairings_are_mixed() -> Planting:
    """Queries pair channel i with i + d/2, keys pair neighbours."""
    return patch.object(RoPE, "key", lambda self, k, tables: _other(self).rotate(k, tables))


@fault("rotation", encodings.the_two_pairings_agree, "rope")
def the_pairing_is_ignored() -> Planting:
    """Whatever pairing is asked for, halves are paired."""
    healthy = RoPE.rotate

    def rotate(self: RoPE, x: Float, tables: Tables) -> Float:
        return healthy(self if self.pairing == "half" else _other(self), x, tables)

    return patch.object(RoPE, "rotate", rotate)


@fault("rotation", encodings.the_two_pairings_agree, "rope")
def rows_are_put_in_order_the_wrong_way() -> Planting:
    """The permutation between the pairings is taken for its inverse."""
    healthy = rope.pairing_order
    return patch.object(positions, "pairing_order", lambda d, to, heads=1: healthy(d, to, heads).argsort())


@fault("rotation", encodings.rotations_keep_norms, "rope")
def a_sign_of_the_rotation_is_wrong() -> Planting:
    """Both sines are subtracted, which shears instead of turning."""

    def rotate(self: RoPE, x: Float, tables: Tables) -> Float:
        assert tables is not None
        cos, sin = tables
        a, b = x.to(position_dtype(x.dtype)).chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos - a * sin], -1).to(x.dtype)

    return patch.object(RoPE, "rotate", rotate)


@fault("precision", encodings.a_rotation_keeps_the_dtype, "rope")
def rotation_returns_float32() -> Planting:
    """Tables in float32 promote half-precision queries and keys."""
    healthy = RoPE.rotate
    return patch.object(RoPE, "rotate", lambda self, x, tables: healthy(self, x, tables).to(position_dtype(x.dtype)))


# -------------------------------------------------------------------- precision


def _angles(chain: Any) -> Planting:
    """A patch of the product of positions and frequencies, wherever it is taken."""
    return together(patch.object(rope, "angles", chain), patch.object(sinusoidal, "angles", chain))


@fault("precision", published.as_published, "rope", "sinusoidal")
def angles_in_float32() -> Planting:
    """Far positions times a frequency, in float32: cosines are wrong by thousandths."""
    return _angles(lambda pos, frequencies: pos.float().unsqueeze(-1) * torch.tensor(frequencies))


@fault("precision", published.as_published, "rope", "sinusoidal")
def angles_in_bfloat16() -> Planting:
    """Frequencies are kept in the model's bfloat16."""
    return _angles(lambda pos, frequencies: pos.unsqueeze(-1) * torch.tensor(frequencies).bfloat16().float())


@fault(
    "precision", precision.under_autocast, encodings.casting_moves_no_position, "rope", "sinusoidal", max_positions=8192
)
def angles_by_a_matrix_product() -> Planting:
    """The outer product of positions and frequencies is written as a matrix product, which autocast rounds."""
    return _angles(lambda pos, frequencies: pos.float().unsqueeze(-1) @ torch.tensor([frequencies]))


@fault("precision", precision.bfloat16, *POSITIONAL, max_positions=8192)
def positions_in_the_models_dtype() -> Planting:
    """Positions are cast to the dtype of the weights: in bfloat16, 256 and 257 are one number."""
    healthy = DecoderOnly.hidden

    def hidden(self: DecoderOnly, ids: Int, at: Layout | None = None, *rest: Any) -> Float:
        at = resolve_layout(ids, at, None if not rest else rest[0])
        dtype = self.input.tokens.weight.dtype
        return healthy(self, ids, at._map(lambda x: x.to(dtype).long()), *rest)

    return patch.object(DecoderOnly, "hidden", hidden)


def _with_a_buffer(persistent: bool) -> Planting:
    """RoPE that keeps its frequencies in a buffer."""
    healthy = RoPE.__init__

    @wraps(healthy)
    def build(self: RoPE, *sizes: Any, **options: Any) -> None:
        healthy(self, *sizes, **options)
        self.register_buffer("inverse", torch.tensor(RoPE.frequencies(self)), persistent)

    def prepare(self: RoPE, at: Layout, dtype: torch.dtype = torch.float32) -> Tables:
        a = (at.pos.unsqueeze(-1) * self.get_buffer("inverse")).unsqueeze(1)
        return a.cos().to(dtype), a.sin().to(dtype)

    return together(patch.object(RoPE, "__init__", build), patch.object(RoPE, "prepare", prepare))


@fault("precision", precision.bfloat16, encodings.casting_moves_no_position, "rope", max_positions=8192)
def frequencies_are_cast_with_the_model() -> Planting:
    """Frequencies live in a buffer, so `.half()` rounds them."""
    return _with_a_buffer(persistent=True)


@fault("state", own_history.copies_compute_the_same, "rope")
def frequencies_are_never_filled_in() -> Planting:
    """A buffer that is not saved stays empty when a model is built without memory and then loaded."""
    return _with_a_buffer(persistent=False)


# -------------------------------------------------------------------- state


@fault("state", history.call_history, "rope")
def a_long_call_changes_the_base_for_good() -> Planting:
    """The base grows with the longest call so far and never shrinks."""
    healthy = RoPE.prepare

    def prepare(self: RoPE, at: Layout, dtype: torch.dtype = torch.float32) -> Tables:
        self.base = max(self.base, 1000.0 * at.shape[1])
        return healthy(self, at, dtype)

    return patch.object(RoPE, "prepare", prepare)


@fault("state", history.call_history, "alibi", "t5")
def the_bias_is_kept_by_shape() -> Planting:
    """A bias once built serves every later call of the same shape, whatever its positions."""
    healthy, kept = PositionEncoding.bias_tensor, {}

    def bias_tensor(
        self: PositionEncoding, q: Layout, k: Layout | None = None, *rest: Any, **more: Any
    ) -> Float | None:
        key = (id(self), q.shape[1], (k or q).shape[1])
        if key not in kept:
            kept[key] = healthy(self, q, k, *rest, **more)
        return kept[key]

    return patch.object(PositionEncoding, "bias_tensor", bias_tensor)


@fault("state", encodings.an_encoding_keeps_no_state, "sinusoidal")
def the_table_is_saved_with_the_model() -> Planting:
    """A computed table is registered as state: a checkpoint no longer loads at another length."""
    healthy = Sinusoidal.__init__

    @wraps(healthy)
    def build(self: Sinusoidal, *sizes: Any, **options: Any) -> None:
        healthy(self, *sizes, **options)
        self.register_buffer("rows", torch.zeros(64, self.d_model))

    return patch.object(Sinusoidal, "__init__", build)
