"""The key/value cache: keys, values AND where each of them sits.

A model asks `extend(at)` once per forward for the Layout of everything its queries may look at, each layer calls
`update(layer, k, v)` (and `update_state`, under an encoding that keeps something of each token), and `commit()` ends
the forward: a step that fails half-way leaves the cache as it was.
Keys enter already rotated. Three kinds, one meaning: attending over the cache equals attending over everything.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch

from gnomon.attention.memory import Memory
from gnomon.errors import BadValue
from gnomon.layout import ORDERED, Layout
from gnomon.positions.base import Tables
from gnomon.shapes import Bool, Float, Int


def _ending_with(newest: Layout, whole: Layout) -> Layout:
    """All tokens of a forward in which the newest of them look at all, and what layers note of that."""
    return whole if torch.compiler.is_compiling() else replace(whole, newest=newest, notes={})


class Cache(ABC):
    """What the kinds share. `at` is the Layout of the committed tokens, None while empty.

    `memory` is what cross-attention looks at, set once by whoever encoded the source. `history` is every id that was
    read and where, kept for encodings that may have to read them again (see `models.recompute`), else None.
    """

    def __init__(self) -> None:
        self.memory: Memory | None = None
        self._recalled: dict[int, tuple[Float, Float]] = {}  # cross-attention's keys and values, by layer
        self.history: tuple[Int, Layout] | None = None
        self.at: Layout | None = None
        self.k: dict[int, Float] = {}  # layer -> (B, K, S, C)
        self.v: dict[int, Float] = {}
        self.state: dict[int, Float] = {}  # layer -> (B, N, S, W), what an encoding keeps of each token
        self._next: Layout | None = None  # of a forward under way
        self._fresh: dict[int, tuple[Float, Float]] = {}
        self._fresh_state: dict[int, Float] = {}
        self._tables: dict[int, Tables] = {}

    def __len__(self) -> int:
        """Slots held now."""
        return 0 if self.at is None else self.at.shape[1]

    def then(self, n: int) -> Layout:
        """Where the next n tokens of every row sit."""
        if self.at is None:
            raise BadValue("an empty cache does not say where tokens sit; give the first call a Layout")
        return self.at.then(n)

    def extend(self, at: Layout) -> Layout:
        """The Layout of held and new tokens together, which the new queries may attend to. Stores nothing yet."""
        if self.at is not None and self.at.shape[0] != at.shape[0]:
            raise BadValue(f"the cache holds {self.at.shape[0]} rows, the new tokens have {at.shape[0]}")
        self._next = at if self.at is None else _ending_with(at, self.at.cat(at))
        self._fresh, self._fresh_state = {}, {}
        return self._next

    @abstractmethod
    def update(self, layer: int, k: Float, v: Float) -> tuple[Float, Float]:
        """Take this layer's new keys and values (B, K, T, C); return all of them, as `extend` laid them out."""

    @abstractmethod
    def update_state(self, layer: int, state: Float) -> Float:
        """The same for the states (B, N, T, W) of an encoding that keeps some of each token."""

    def rooms(self, layer: int) -> tuple[Float, Float] | None:
        """Where this layer's keys and values lie, (B, K, at least as many slots as `extend` laid out, C), to be written
        in place of `update`; None where this kind of cache keeps them otherwise. Only without gradients."""
        return None

    def states_of(self, layer: int) -> tuple[Float, Layout] | None:
        """The states (B, N, S, W) that this layer's encoding keeps of the committed tokens, and where these sit."""
        return None if self.at is None or layer not in self.state else (self.state[layer][:, :, : len(self)], self.at)

    def recall(self, layer: int, make: Callable[[], tuple[Float, Float]]) -> tuple[Float, Float]:
        """Cross-attention's keys and values (B, K, S, C) of this layer: made from memory once, then kept."""
        if layer not in self._recalled:
            self._recalled[layer] = make()
        return self._recalled[layer]

    def recalled(self, layer: int) -> tuple[Float, Float] | None:
        """The same, where they were made already."""
        return self._recalled.get(layer)

    def tables(self, layer: int, make: Callable[[], Tables]) -> Tables:
        """What this layer makes of its encoding's tables, by weights that stay while tokens are held: made once."""
        if layer not in self._tables:
            self._tables[layer] = make()
        return self._tables[layer]

    @abstractmethod
    def fresh(self) -> "Cache":
        """An empty cache of the same kind and size, with the same memory."""

    def _sharing(self, other: "Cache") -> Self:
        self.memory, self._recalled = other.memory, other._recalled
        return self

    def become(self, other: Self) -> None:
        """Hold what another cache of the same kind holds."""
        self.__dict__.update(other.__dict__)

    def commit(self) -> None:
        """The forward has ended: the new tokens are held from now on."""
        for layer, (k, v) in self._fresh.items():
            self.k[layer], self.v[layer] = k, v
        self.state.update(self._fresh_state)
        self.at, self._next, self._fresh, self._fresh_state = self._next, None, {}, {}

    def reorder(self, index: Int) -> None:
        """Rows become `index` (B',), repeated or dropped as it says: beams, finished rows. Memory goes with them."""
        if self.memory is not None:
            self.memory = self.memory.rows(index)
            self._recalled = {
                n: (k.index_select(0, index), v.index_select(0, index)) for n, (k, v) in self._recalled.items()
            }
        if self.history is not None:
            ids, at = self.history
            self.history = ids.index_select(0, index), at.rows(index)
        if self.at is not None:
            self.at = self.at.rows(index)
            self.k = {n: x.index_select(0, index) for n, x in self.k.items()}
            self.v = {n: x.index_select(0, index) for n, x in self.v.items()}
            self.state = {n: x.index_select(0, index) for n, x in self.state.items()}

    def crop(self, keep: int | Sequence[int] | Int) -> None:
        """Go back to the first `keep` real tokens of each row: one number, or one per row."""
        if self.at is None:
            return
        B = self.at.shape[0]
        rows = torch.as_tensor(keep, device=self.at.device).reshape(-1, 1)
        if rows.shape[0] not in (1, B) or bool((rows < 0).any()):
            raise BadValue(f"crop keeps a number >= 0 of tokens, one or {B} of them; got {keep!r}")
        self._keep_before(rows.expand(B, 1))
        if self.history is not None:
            ids, at = self.history
            doc = torch.where(at.real & (at.step < rows), 0 if at.doc is None else at.doc, -1)
            self.history = ids, replace(at, doc=doc, kind="packed" if at.kind == "packed" else "padded")
        if self.at is None:
            self.history = None

    def _forgotten(self) -> Int | int:
        """How many tokens of each row (B, 1) are gone for good."""
        return 0

    def _keep_before(self, keep: Int) -> None:
        """Empty the slots of tokens at step >= keep (B, 1), and drop slots that are empty in every row."""
        at = self.at
        assert at is not None
        stay = at.real & (at.step < keep)
        expected = (keep - self._forgotten()).clamp(min=0).minimum(at.real.sum(1, keepdim=True))
        if bool((stay.sum(1, keepdim=True) < expected).any()):
            raise BadValue("a bidirectional prefix was read in one piece and cannot be cut; keep all of it or none")
        last = int((stay.any(0) * torch.arange(1, len(self) + 1, device=at.device)).amax())
        at, stay = at.tokens(slice(0, last)), stay[:, :last]
        if not bool(stay.all()):
            doc = at.doc if at.doc is not None else torch.zeros_like(at.pos)
            at = replace(at, doc=torch.where(stay, doc, -1), kind="packed" if at.kind == "packed" else "padded")
        self.at = at if last else None
        self._truncate(last)

    def _truncate(self, n: int) -> None:
        """Nothing after the first n slots is held any longer."""
        self.k = {layer: x[:, :, :n] for layer, x in self.k.items() if n}
        self.v = {layer: x[:, :, :n] for layer, x in self.v.items() if n}
        self.state = {layer: x[:, :, :n] for layer, x in self.state.items() if n}


@dataclass
class _Room:
    """Keys and values (B, K, capacity, C), of which `filled` slots are somebody's."""

    k: Float
    v: Float
    filled: int


def _writable(x: Float) -> bool:
    """Whether this may be written in place: what was made in inference mode only there."""
    return torch.is_inference_mode_enabled() or not x.is_inference()


class GrowingCache(Cache):
    """Appends; no limit but memory. Without gradients tokens are written behind those held, into room that is made
    for a third as many more at a time; with gradients each step copies."""

    def __init__(self) -> None:
        super().__init__()
        self._rooms: dict[int, _Room] = {}

    def fresh(self) -> "GrowingCache":
        return GrowingCache()._sharing(self)

    def update(self, layer: int, k: Float, v: Float) -> tuple[Float, Float]:
        if layer in self.k:
            if torch.is_grad_enabled() or torch.compiler.is_compiling():
                k, v = torch.cat([self.k[layer], k], 2), torch.cat([self.v[layer], v], 2)
            else:
                n, room = len(self), self._room(layer, k.shape[2])
                room.k[:, :, n : room.filled], room.v[:, :, n : room.filled] = k, v
                k, v = room.k[:, :, : room.filled], room.v[:, :, : room.filled]
        self._fresh[layer] = (k, v)
        return k, v

    def rooms(self, layer: int) -> tuple[Float, Float] | None:
        if layer not in self.k or self._next is None:
            return None
        room = self._room(layer, self._next.shape[1] - len(self))
        self._fresh[layer] = (room.k[:, :, : room.filled], room.v[:, :, : room.filled])
        return room.k, room.v

    def _room(self, layer: int, more: int) -> "_Room":
        """Where this layer's tokens lie and `more` can follow. Another cache that was copied from this one may have
        written behind them: then they move."""
        n, room, k, v = len(self), self._rooms.get(layer), self.k[layer], self.v[layer]
        if (
            room is None
            or not self._lies(layer, room)
            or room.filled != n
            or room.k.shape[2] < n + more
            or not _writable(room.k)
        ):
            capacity = n + more + max(32, n // 3)
            new_k, new_v = (x.new_empty(*x.shape[:2], capacity, x.shape[3]) for x in (k, v))
            room = _Room(new_k, new_v, n)
            room.k[:, :, :n], room.v[:, :, :n] = k, v
            self._rooms[layer] = room
        room.filled = n + more
        return room

    def reorder(self, index: Int) -> None:
        n, lying = len(self), [layer for layer, room in self._rooms.items() if self._lies(layer, room)]
        moved = {
            layer: _Room(room.k.index_select(0, index), room.v.index_select(0, index), n)
            for layer, room in ((layer, self._rooms[layer]) for layer in lying)
        }
        self.k, self.v = ({n: x for n, x in store.items() if n not in moved} for store in (self.k, self.v))
        super().reorder(index)
        self._rooms = moved
        self.k = self.k | {layer: room.k[:, :, :n] for layer, room in moved.items()}
        self.v = self.v | {layer: room.v[:, :, :n] for layer, room in moved.items()}

    def _lies(self, layer: int, room: "_Room") -> bool:
        """Whether a room is where this layer's tokens are."""
        held = self.k.get(layer), self.v.get(layer)
        return all(x is not None and x.data_ptr() == y.data_ptr() for x, y in zip(held, (room.k, room.v), strict=True))

    def update_state(self, layer: int, state: Float) -> Float:
        self._fresh_state[layer] = torch.cat([self.state[layer], state], 2) if layer in self.state else state
        return self._fresh_state[layer]


class PreallocatedCache(Cache):
    """Room for `capacity` slots, taken at the first update; steps write in place (so: without gradients)."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        if capacity < 1:
            raise BadValue(f"a cache needs room for at least one token, got capacity={capacity}")
        self.capacity = capacity

    def fresh(self) -> "PreallocatedCache":
        return PreallocatedCache(self.capacity)._sharing(self)

    def extend(self, at: Layout) -> Layout:
        if len(self) + at.shape[1] > self.capacity:
            raise BadValue(
                f"the cache has room for {self.capacity} tokens and holds {len(self)}; {at.shape[1]} more do not fit. "
                f"Build it with capacity >= {len(self) + at.shape[1]}, or use a growing or rolling cache"
            )
        return super().extend(at)

    def update(self, layer: int, k: Float, v: Float) -> tuple[Float, Float]:
        return self._write(self.k, layer, k), self._write(self.v, layer, v)

    def update_state(self, layer: int, state: Float) -> Float:
        return self._write(self.state, layer, state)

    def rooms(self, layer: int) -> tuple[Float, Float] | None:
        k, v = self.k.get(layer), self.v.get(layer)
        if k is None or v is None or not len(self) or not k.shape[2] == v.shape[2] == self.capacity:
            return None
        return (k, v) if _writable(k) else None

    def _write(self, store: dict[int, Float], layer: int, x: Float) -> Float:
        """What this layer's room holds once x stands in it."""
        n, end, room = len(self), len(self) + x.shape[2], store.get(layer)
        if n == 0 or room is None or room.shape[2] < self.capacity:  # first use
            store[layer] = room = self._room(room, x, n)
        room[:, :, n:end] = x.detach()
        return room[:, :, :end]

    def _truncate(self, n: int) -> None:
        """The room stays; what is no longer held is written over."""

    def _room(self, old: Float | None, new: Float, n: int) -> Float:
        """A buffer of full capacity with the first n slots of `old` in it."""
        room = new.new_zeros(new.shape[0], new.shape[1], self.capacity, new.shape[3])
        if old is not None and n:
            room[:, :, :n] = old[:, :, :n]
        return room


class RollingCache(Cache):
    """Keeps the newest `window + rollback` tokens of every row, for models in which a token sees only `window`, and the
    first `sink_tokens` ones of the document it is in, if the model goes on seeing those.

    A chunk attends before anything it needs is dropped. `crop` may go back `rollback` tokens, and says so past that.
    """

    def __init__(self, window: int, rollback: int = 0, sink_tokens: int = 0) -> None:
        super().__init__()
        if window < 1 or rollback < 0 or sink_tokens < 0:
            raise BadValue(
                f"a rolling cache needs window >= 1, rollback >= 0 and sink_tokens >= 0; got {window}, {rollback} "
                f"and {sink_tokens}"
            )
        self.window, self.rollback, self.sink_tokens = window, rollback, sink_tokens
        self._newest: Int | slice = slice(None)  # the slots that stay after a forward
        self._gone: Int | None = None

    def fresh(self) -> "RollingCache":
        return RollingCache(self.window, self.rollback, self.sink_tokens)._sharing(self)

    def extend(self, at: Layout) -> Layout:
        whole, slots = super().extend(at), self.window + self.rollback + self.sink_tokens
        if whole.shape[1] <= slots or (whole.kind in ORDERED and not self.sink_tokens):
            self._newest = slice(-slots, None)
        else:
            worth = torch.where(whole.real, whole.step, -1)
            worth = torch.where(self._is_sink(whole), worth.amax() + 1, worth)
            self._newest = worth.topk(slots, dim=1).indices.sort(1).values  # (B, slots)
        return whole

    def _is_sink(self, whole: Layout) -> Bool:
        """(B, S): the first `sink_tokens` tokens of each row's newest document."""
        first = whole.real & (whole.pos < self.sink_tokens)
        if whole.doc is None:
            return first
        newest = torch.where(whole.real, whole.step, -1).argmax(1, keepdim=True)
        return first & (whole.doc == whole.doc.gather(1, newest))

    def update(self, layer: int, k: Float, v: Float) -> tuple[Float, Float]:
        if layer in self.k:
            k, v = torch.cat([self.k[layer], k], 2), torch.cat([self.v[layer], v], 2)
        self._fresh[layer] = (self._kept(k), self._kept(v))
        return k, v

    def update_state(self, layer: int, state: Float) -> Float:
        state = torch.cat([self.state[layer], state], 2) if layer in self.state else state
        self._fresh_state[layer] = self._kept(state)
        return state

    def commit(self) -> None:
        whole = self._next
        assert whole is not None
        if isinstance(self._newest, slice):
            self._next = whole.tokens(self._newest)
        else:
            self._next = whole.slots(self._newest)
        gone = whole.real.sum(1, keepdim=True) - self._next.real.sum(1, keepdim=True)
        self._gone = gone + (0 if self._gone is None else self._gone)
        super().commit()

    def reorder(self, index: Int) -> None:
        super().reorder(index)
        self._gone = None if self._gone is None else self._gone.index_select(0, index)

    def _kept(self, x: Float) -> Float:
        if isinstance(self._newest, slice):
            return x[:, :, self._newest]
        return x.gather(2, self._newest[:, None, :, None].expand(-1, x.shape[1], -1, x.shape[3]))

    def _forgotten(self) -> Int | int:
        return 0 if self._gone is None else self._gone

    def _keep_before(self, keep: Int) -> None:
        gone = self._forgotten()
        seen = max(self.window - 1, 1)  # what the next token looks back at; one at least, which says where it sits
        if bool((gone > (keep - seen).clamp(min=0)).any()):
            raise BadValue(
                f"a rolling cache of window {self.window} with rollback {self.rollback} cannot go back to "
                f"{keep.flatten().tolist()} tokens: what they looked at is gone. Build it with a larger rollback"
            )
        super()._keep_before(keep)


__all__ = ["Cache", "GrowingCache", "PreallocatedCache", "RollingCache"]
