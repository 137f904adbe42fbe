"""Attention of one new token a row as instructions of a Program, and what is filled into them at each step."""

from dataclasses import dataclass
from typing import Any
from weakref import ref

import torch

from gnomon.attention.cross import CrossAttention
from gnomon.attention.multihead import MultiHeadAttention
from gnomon.native import in_memory
from gnomon.native.program import ATTEND, TURN, Program, Recorded, Unrecordable
from gnomon.positions import PositionEncoding, RoPE
from gnomon.positions.base import Tables
from gnomon.shapes import Float

_LEFT = ("query", "key", "read", "prepare_for", "of_layer", "project")  # hooks that no instruction calls


@dataclass
class Spot:
    """One attention in a program: where its instructions stand in the list.

    turns   of queries, keys and values, the last two of which write into the cache; none in cross-attention
    """

    layer: int
    module: MultiHeadAttention
    position: PositionEncoding
    attend: int
    turns: tuple[int, ...] = ()
    seen: tuple[Any, ...] = ()  # weak references to the keys and values that it was pointed at last


def check(position: PositionEncoding) -> None:
    """Raise Unrecordable unless all that an encoding does to a layer is to turn pairs, or to add a bias to scores."""
    for hook in _LEFT:
        if getattr(type(position), hook) is not getattr(PositionEncoding, hook):
            raise Unrecordable(f"{position.name} overrides {hook}")
    turns = type(position).rotate is not PositionEncoding.rotate
    if position.acts == "attention" or (turns and type(position).rotate is not RoPE.rotate):
        raise Unrecordable(position.name)


def self_attention(
    module: MultiHeadAttention, x: Recorded, position: PositionEncoding, layer: int, spots: list[Spot]
) -> Recorded:
    """What `module` makes of x, attending to what the cache holds and to itself."""
    if type(module) is not MultiHeadAttention:
        raise Unrecordable(type(module).__name__)
    program, C = x.program, module.d_head
    q, k, v = module.q_norm(module.q(x)), module.k_norm(module.k(x)), module.v(x)
    pairs, kind = 0, 0
    if isinstance(position, RoPE):
        pairs, kind = position.rotary_dim, int(position.pairing == "interleaved")
    mine, kept = program.buffer(q.width), -1 - 2 * layer  # no address: the cache lies elsewhere at each step
    turns = []
    for value, heads, target, turned in (
        (q, module.n_heads, mine.at, pairs),
        (k, module.n_kv_heads, kept, pairs),
        (v, module.n_kv_heads, kept - 1, 0),
    ):
        program.emit(
            [value.at],
            [target],
            op=TURN,
            kind=kind,
            heads=heads,
            x=value.at,
            rows=program.rows * heads,
            inner=C,
            out=turned,
            by_row=heads * C,
            by_head=C,
            y=max(target, 0),
        )
        turns.append(len(program.steps) - 1)
    return _attended(module, mine, [kept, kept - 1], Spot(layer, module, position, 0, tuple(turns)), spots)


def cross_attention(
    module: CrossAttention, x: Recorded, position: PositionEncoding, layer: int, spots: list[Spot]
) -> Recorded:
    """What `module` makes of x, attending to memory."""
    if type(module) is not CrossAttention:
        raise Unrecordable(type(module).__name__)
    q = module.q_norm(module.q(x))
    return _attended(module, q, [], Spot(layer, module, position, 0), spots)


def _attended(module: MultiHeadAttention, q: Recorded, kept: list[int], spot: Spot, spots: list[Spot]) -> Recorded:
    program, s = q.program, module.settings
    y = program.buffer(q.width)
    assert s.scale is not None
    program.emit(
        [q.at, *kept],
        [y.at],
        op=ATTEND,
        x=q.at,
        y=y.at,
        heads=module.n_heads,
        inner=module.d_head,
        shared=module.n_heads // module.n_kv_heads,
        scale=s.scale,
        eps=s.softcap or 0.0,
        sinks=program.use(module.sinks, module.n_heads),
    )
    spot.attend = len(program.steps) - 1
    spots.append(spot)
    out: Recorded = module.out(y)
    return out


def fits(spot: Spot, program: Program, k: Float, v: Float, n: int) -> bool:
    """Point a layer's instructions at keys and values (B, K, slots, C), of which `n` are used; whether they lie as
    these can read them."""
    if not (spot.seen and spot.seen[0]() is k and spot.seen[1]() is v):
        ours = (program.rows, spot.module.n_kv_heads, spot.module.d_head)
        for x in (k, v):
            alike = (*x.shape[:2], x.shape[3]) == ours and x.stride() == k.stride() and x.stride(3) == 1
            if not alike or x.dtype != torch.float32 or not in_memory(x):
                return False
        spot.seen = (ref(k), ref(v))
        for turn in program.some(spot.turns[1:]):
            turn.by_row, turn.by_head, *_ = k.stride()
        at = program.steps[spot.attend]
        at.by_row, at.by_head, at.by_slot, _ = k.stride()
        at.w, at.b = k.data_ptr(), v.data_ptr()
    return k.shape[2] >= n


def fill(program: Program, spot: Spot, n: int, tables: Tables, mask: Float | None) -> None:
    """Fill in this step's numbers: `n` keys are seen, of which the last, in self-attention, is written; the tables of
    the encoding; what is added to scores, (B or 1, H or 1, 1, n)."""
    at = program.steps[spot.attend]
    at.out, at.with_ = n, None if mask is None else mask.data_ptr()
    if mask is not None:
        by_row, by_head, *_ = mask.stride()
        at.mask_row, at.mask_head = by_row if len(mask) > 1 else 0, by_head if mask.shape[1] > 1 else 0
    if not spot.turns:
        return
    q_turn, k_turn, v_turn = program.some(spot.turns)
    last = 4 * (n - 1) * at.by_slot
    k_turn.y, v_turn.y = at.w + last, at.b + last
    if tables is not None:
        for turn in (q_turn, k_turn):
            turn.w, turn.b = tables[0].data_ptr(), tables[1].data_ptr()
            turn.shared = tables[0].shape[-1] if len(tables[0]) > 1 else 0


__all__ = ["Spot", "check", "cross_attention", "fill", "fits", "self_attention"]
