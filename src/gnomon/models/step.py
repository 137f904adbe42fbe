"""A step of decoding in one compiled call: a stack of blocks for one new token a row.

The stack is recorded once for each number of rows (`native.program`), and again when anything in it has changed. At
each step only what depends on the text is filled in: tables, masks, and where the cache keeps keys and values. None is
the answer wherever the model has to run as it is written: gradients, traces, hooks, several tokens a row, a cache that
keeps its tokens otherwise, or an operation that no instruction carries out.
"""

from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.nn.modules.module import _has_any_global_hook

from gnomon import native
from gnomon.attention import Cache, Memory
from gnomon.attention.attend import NOTHING, choose, watched
from gnomon.attention.recorded import Spot, check, cross_attention, fill, fits, self_attention
from gnomon.blocks import Block, DecoderBlock, OneNormBlock, ParallelBlock
from gnomon.layout import Layout, visible
from gnomon.native.program import Program, Recorded, Unrecordable
from gnomon.positions import PositionEncoding
from gnomon.positions.base import Tables
from gnomon.shapes import Float

ROWS = 16  #: with more of them products at large are faster
Layer = tuple[nn.Module, PositionEncoding]


class Recording:
    """A program for so many rows, and how to see that it still says what the modules do."""

    def __init__(self, stack: Any, layers: list[Layer], rows: int, width: int) -> None:
        """Raises Unrecordable where there can be none."""
        for part in (p for block, _ in layers for p in block.modules()):
            if not type(part).__module__.startswith(("gnomon.", "torch.nn.")):  # it may do what cannot be seen
                raise Unrecordable(type(part).__name__)
        self.watch = Watch(stack)
        self.program, self.spots, self.lock = Program(rows), list[Spot](), Lock()
        for _, position in layers:
            check(position)
        self.x = self.program.buffer(width)
        x: Any = self.x
        for layer, (block, position) in enumerate(layers):
            x = _block(block, x, position, layer, self.spots)
        self.y = stack.norm(x)
        if self.y is self.x or not isinstance(self.y, Recorded):
            raise Unrecordable("a stack without layers")
        self.inputs, self.outputs = self.program.rows_at(self.x.at), self.program.rows_at(self.y.at)
        self.program.compile()


def _block(block: Any, x: Any, position: PositionEncoding, layer: int, spots: list[Spot]) -> Any:
    """The stream after a block: its own wiring, run over what is recorded."""

    def attention(y: Any) -> Any:
        return self_attention(block.attention, y, position, layer, spots)

    def cross(y: Any) -> Any:
        return cross_attention(block.cross, y, NOTHING, layer, spots)

    if type(block) in (Block, ParallelBlock, OneNormBlock):
        return block.add_sublayers(x, attention)
    if type(block) is DecoderBlock:
        return block.add_sublayers(x, attention, cross)
    raise Unrecordable(type(block).__name__)


class Watch:
    """What a recording relies on: modules that are as they were, with the same weights in the same places."""

    def __init__(self, root: nn.Module) -> None:
        parts = list(root.modules())
        dicts = [d for part in parts for d in (part.__dict__, part._modules, part._parameters, part._buffers) if d]
        self.now, self.before = dicts, [dict(d) for d in dicts]
        self.hooks = [h for part in parts for h in (part._forward_hooks, part._forward_pre_hooks)]
        weights = [t for part in parts for d in (part._parameters, part._buffers) for t in d.values() if t is not None]
        self.weights, self.places = weights, [t.data_ptr() for t in weights]
        self.forwards = [(kind, kind.forward) for kind in {type(part) for part in parts}]

    def unchanged(self) -> bool:
        """Whether all is as it was."""
        with suppress(RuntimeError, ValueError):  # tensors that were put in the place of others cannot be compared
            return (
                self.now == self.before  # what lies in these dictionaries is compared by identity first
                and not any(self.hooks)
                and [t.data_ptr() for t in self.weights] == self.places
                and all(kind.forward is forward for kind, forward in self.forwards)
            )
        return False


_recordings: WeakKeyDictionary[nn.Module, dict[int, Recording | None]] = WeakKeyDictionary()


def step(
    stack: nn.Module,
    layers: Callable[[], list[Layer]],
    x: Float,
    at: Layout,
    k_at: Layout,
    cache: Cache,
    tables: dict[int, Tables],
    memory: Memory | None,
) -> Float | None:
    """x (B, 1, D) at `at` -> (B, 1, D) after all layers and the norm, keys and values in the cache; or None."""
    if not _may(x, k_at):
        return None
    rows = x.shape[0]
    known = _recordings.setdefault(stack, {})
    recording = known.get(rows)
    if rows not in known or (recording is not None and not recording.watch.unchanged()):
        recording = known[rows] = _record(stack, layers(), rows, x.shape[2])
    if recording is None or not recording.lock.acquire(blocking=False):  # another thread is in it
        return None
    try:
        return _run(recording, x, at, k_at, cache, tables, memory)
    finally:
        recording.lock.release()


def _may(x: Float, k_at: Layout) -> bool:
    """Whether one token a row is to be read, by nobody who wants to see how."""
    few = x.shape[1] == 1 and x.shape[0] <= ROWS and k_at.newest is not None
    if not few or torch.is_grad_enabled() or torch.compiler.is_compiling() or x.dtype != torch.float32:
        return False
    plain = native.in_memory(x) and native.wanted() and not native.watched() and not watched()
    return plain and not _has_any_global_hook() and native.library() is not None  # type: ignore[no-untyped-call]


def _record(stack: nn.Module, layers: list[Layer], rows: int, width: int) -> Recording | None:
    try:
        return Recording(stack, layers, rows, width)
    except Exception:  # modules run over what is no tensor, and answer in their own ways
        return None


def _run(
    recording: Recording,
    x: Float,
    at: Layout,
    k_at: Layout,
    cache: Cache,
    tables: dict[int, Tables],
    memory: Memory | None,
) -> Float | None:
    rows, program, most = x.shape[0], recording.program, 1
    masks: dict[Any, Float | None] = {}
    for spot in recording.spots:
        seen, s = (k_at if spot.turns else memory.at if memory is not None else k_at), spot.module.settings
        found = cache.rooms(spot.layer) if spot.turns else cache.recalled(spot.layer)
        n = seen.shape[1]
        if found is None or not fits(spot, program, *found, n):
            return None
        key = (id(spot.position), s.causal, s.window, s.sink_tokens)
        if key not in masks:
            masks[key] = _mask(spot, at, seen)
        fill(program, spot, n, tables.get(id(spot.position)), masks[key])
        most = max(most, n)
    recording.inputs.copy_(x.view(rows, -1))
    program.run(most)
    return recording.outputs.clone().view(x.shape)


def _mask(spot: Spot, at: Layout, k_at: Layout) -> Float | None:
    """What is added to scores, (B or 1, H or 1, 1, S), by the dense definition; None where nothing is."""
    s = spot.module.settings
    if choose(spot.position, at, k_at, s, "cpu") == "plain":
        return None
    ok = visible(at.one_row(), k_at.one_row(), s.causal, s.window, s.sink_tokens)
    mask = spot.position.add_bias(ok, at, k_at, spot.module.n_heads)
    return mask if mask.stride(-1) == 1 else mask.contiguous()


__all__ = ["ROWS", "Recording", "Watch", "step"]
