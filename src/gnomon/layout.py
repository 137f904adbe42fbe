"""Layout: where each token sits. It travels with the tokens; `visible` is the only mask in the package.

Whatever asks "where is this token?" reads a Layout. No function takes a length, an offset or a padding mask where it
needs positions, so caches, padding on either side, packing and eviction are not special cases anywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch.utils._pytree import register_pytree_node

from gnomon.arrays import as_mask, cells, check_device, numbers, packed_fields, pieces
from gnomon.errors import BadValue, must_be, wrong
from gnomon.shapes import Bool, Int
from gnomon.show import cells as shown_cells

Kind = Literal["dense", "placed", "padded", "packed", "custom"]
ORDERED = ("dense", "placed")  #: kinds of rows that are alike in time, without padding
Positions = Int | int | float | Sequence[int | float] | Sequence[Sequence[int | float]]


@dataclass(frozen=True, eq=False)
class Layout:
    """Positions of a batch of tokens. Build one with a constructor below; fields are (B, T) int64 unless said.

    pos     what encodings read: restarts in every document, skips padding, may be random or fractional
    step    time order over the real tokens of the row: causality and windows read this, never memory order
    doc     which document of its row a token belongs to; -1 marks padding and unfilled cache slots;
            None means one document a row and no padding
    length  largest position + 1 of the token's own document, read only by methods whose table depends on length
    kind    known without looking at values, so that a kernel can be chosen: "dense" promises that all rows are
            alike, without padding, and that pos and step each count up by one; "placed" promises this of step alone
    coords  (B, T, A) of tokens that sit at several coordinates (row and column of a picture; time, row and column);
            None where every coordinate is the position, as of text. Encodings with axes read `axes(A)`
    newest, notes   of a cache during one forward: the last tokens, which look at these, and what layers make of both
    """

    pos: Int
    step: Int
    doc: Int | None
    length: Int
    kind: Kind = "custom"
    coords: Int | None = None
    newest: "Layout | None" = None
    notes: dict[Any, Any] | None = None

    # ------------------------------------------------------------------ constructors

    @staticmethod
    def dense(B: int, T: int, device: torch.device | str | None = None) -> "Layout":
        """B rows of T tokens at positions 0..T-1, no padding."""
        if not torch.compiler.is_compiling():
            for name, size in (("B", B), ("T", T)):
                must_be(name, size, int, "Layout.dense(B, T) takes the numbers of rows and of tokens a row")
                if size < 0:
                    raise BadValue(f"Layout.dense(B, T) takes numbers of at least 0, got {name}={size}")
            check_device(device)
        pos = torch.arange(T, device=device).expand(B, T)
        return Layout(pos, pos, None, torch.full_like(pos, T), "dense")

    @staticmethod
    def padded(mask: Bool) -> "Layout":
        """One document a row; `mask` (B, T) is true (or 1) at real tokens, padding may be on either side or inside.

        A tensor, an array or rows of truth values.
        """
        mask = as_mask(mask)
        pos = (mask.cumsum(1) - 1).clamp(min=0)
        length = mask.sum(1, keepdim=True).expand_as(pos)
        return Layout(pos, pos, torch.where(mask, 0, -1), length, "padded")

    @staticmethod
    def packed(lengths: Sequence[Sequence[int]], device: torch.device | str | None = None) -> "Layout":
        """Several documents a row, one after another: `packed([[3, 2], [4]])`. The tail of a shorter row is padding."""
        check_device(device)
        pos, step, doc, length = packed_fields(lengths)
        return Layout(pos, step, doc, length, "packed").to(device or pos.device)

    @staticmethod
    def prefix(n: int | Sequence[int], T: int, device: torch.device | str | None = None) -> "Layout":
        """T tokens whose first `n` see one another whatever their order: they share one time step (n - 1).

        `n` is one number, or one per row. A prefix must reach the model in one call; it cannot be split into chunks.
        """
        lengths = [n] if type(n) is int else n
        rows = numbers("n", lengths, "one whole number, or one for each row: gn.Layout.prefix(n, T)", device)
        must_be("T", T, int)
        if rows.dim() != 1 or rows.dtype not in (torch.int64, torch.int32) or len(rows) == 0:
            raise wrong("n", n, "one whole number, or one for each row")
        rows = rows.unsqueeze(1)
        if bool(((rows < 0) | (rows > T)).any()):
            raise BadValue(f"prefix lengths must lie between 0 and T={T}, got {rows.flatten().tolist()}")
        at = Layout.dense(len(rows), T, device)
        return replace(at, step=torch.where(at.pos < rows, rows - 1, at.pos), kind="custom")

    @staticmethod
    def grid(
        *sizes: int,
        batch: int = 1,
        before: int = 0,
        extent: float | None = None,
        device: torch.device | str | None = None,
    ) -> "Layout":
        """The cells of a picture or board, row by row: `Layout.grid(8, 8)`. Any number of axes, the last runs fastest.

        before   tokens in front of the grid, such as a class token; they sit at coordinates 0, so nothing turns them
        extent   coordinates of cell middles between -extent and extent, for pictures of several sizes (DINOv3: 2 pi)
        Position and time count in reading order; batch: rows, all alike.
        """
        check_device(device)
        must_be("before", before, int)
        here = cells(sizes, extent)
        if before < 0:
            raise BadValue(f"before is a number of tokens, at least 0; got {before}")
        coords = torch.cat([here.new_zeros(before, len(sizes)), here]).to(device)
        return Layout.dense(batch, len(coords), device).at_coords(coords)

    @staticmethod
    def mixed(rows: Sequence[Sequence[int | Sequence[int]]], device: torch.device | str | None = None) -> "Layout":
        """Text and pictures in a row: `mixed([[5, (1, 4, 4), 3]])` is 5 tokens, a picture of 1 x 4 x 4 cells, 3 tokens.

        Each piece starts after the largest coordinate so far, and a picture's cells count from there along every axis
        (M-RoPE: Wang et al. 2024, arXiv:2409.12191, section 2.1). Positions are the largest coordinate. The tail of a
        shorter row is padding.
        """
        check_device(device)
        coords, mask = pieces(rows)
        return Layout.padded(mask).at_coords(coords, moved=True).to(device or "cpu")

    @staticmethod
    def randomized(T: int, max: int, rng: torch.Generator | None = None, batch: int = 1) -> "Layout":
        """T sorted positions drawn without replacement from 0..max-1, afresh for each row.

        Randomized positional encodings (Ruoss et al. 2023, arXiv:2305.16843, section 3).
        """
        for name, size in (("T", T), ("max", max), ("batch", batch)):
            must_be(name, size, int)
            if size < 0:
                raise BadValue(f"{name} is a number of at least 0, got {size}")
        must_be("rng", rng, torch.Generator | None)
        if max < T:
            raise BadValue(f"cannot draw {T} distinct positions from {max}; give max >= {T}")
        device = rng.device if rng is not None else None
        draw = torch.rand(batch, max, generator=rng, device=device).argsort(1)[:, :T].sort(1).values
        at = Layout.dense(batch, T, draw.device)
        return replace(at, pos=draw, length=(draw[:, -1:] + 1).expand_as(draw), kind="placed")

    @staticmethod
    def from_hf(attention_mask: Bool | None = None, position_ids: Int | None = None) -> "Layout":
        """From the tensors Hugging Face models take: a (B, T) mask of 1 at real tokens, positions (B, T), or both.

        A position 0 after a row's first token begins another document, which is how packed rows are told there.
        Positions (A, B, T) are coordinates along A axes, as M-RoPE has them, of one document a row.
        """
        if isinstance(position_ids, torch.Tensor) and position_ids.dim() == 3:
            ones = torch.ones_like(position_ids[0], dtype=torch.bool)
            at = Layout.padded(ones if attention_mask is None else attention_mask)
            return at.at_coords(position_ids.permute(1, 2, 0), moved=True)
        if attention_mask is None:
            if position_ids is None:
                raise BadValue("from_hf needs attention_mask, position_ids or both; got neither")
            attention_mask = torch.ones_like(Layout.placed(position_ids).pos, dtype=torch.bool)
        at = Layout.padded(attention_mask)
        if position_ids is None:
            return at
        position_ids = Layout.placed(position_ids).pos
        if position_ids.shape != at.pos.shape:
            raise BadValue(
                f"position_ids have shape {tuple(position_ids.shape)}, the attention mask {tuple(at.pos.shape)}"
            )
        first = at.real & (at.step == 0)
        doc = ((position_ids == 0) & at.real & ~first).cumsum(1)  # (B, T) how many documents began before
        top = torch.zeros_like(position_ids).scatter_reduce(1, doc, position_ids.where(at.real, -1), "amax") + 1
        kind: Kind = "packed" if bool((doc > 0).any()) else "custom"
        return Layout(position_ids, at.step, doc.where(at.real, -1), top.gather(1, doc), kind)

    @staticmethod
    def placed(positions: Positions, device: torch.device | str | None = None) -> "Layout":
        """One text a row whose tokens, in order of time, sit at these positions: one number, (T,) or (B, T) of them.

        `Layout.placed([5, 6, 7])`. A tensor, an array or lists; fractions are positions too. For padding see `padded`,
        for several texts in one row `packed` and `from_hf`.
        """
        how = "give whole numbers such as [5, 6, 7], or rows of them"
        how = "it is a Layout already: take it as it is" if isinstance(positions, Layout) else how
        pos = numbers("positions", positions, "one number, (tokens,) or (batch, tokens) of them", device, how)
        if pos.dtype == torch.bool:
            raise wrong("positions", positions, "numbers", "for a mask of real tokens: gn.Layout.padded(mask)")
        if pos.dim() > 2 or pos.numel() == 0 or pos.is_complex():
            raise wrong("positions", positions, "one number, (tokens,) or (batch, tokens) of them", how)
        pos = pos if pos.is_floating_point() else pos.long()
        pos = pos.reshape(-1, pos.shape[-1] if pos.dim() else 1)
        step = torch.arange(pos.shape[1], device=pos.device).expand_as(pos)
        return Layout(pos, step, None, (pos.amax(1, keepdim=True) + 1).expand_as(pos), "placed")

    # ------------------------------------------------------------------ views

    def mask(
        self, keys: "Layout | None" = None, *, causal: bool = True, window: int | None = None, sink_tokens: int = 0
    ) -> Bool:
        """Who may see whom as a plain mask (B, 1, T, S), true where a query may look: `visible` for any model.

        keys: the tokens looked at (default: these themselves); causal, window and sink_tokens: see `visible`. It is
        what torch's scaled_dot_product_attention takes as attn_mask; torch.nn.MultiheadAttention takes the opposite,
        for one row `~at.mask()[0, 0]`.

        >>> Layout.packed([[2, 1]]).mask()[0, 0].int().tolist()
        [[1, 0, 0], [1, 1, 0], [0, 0, 1]]
        """
        return visible(self, self if keys is None else keys, causal, window, sink_tokens)

    @property
    def shape(self) -> tuple[int, int]:
        """(B, T)."""
        return (self.pos.shape[0], self.pos.shape[1])

    @property
    def device(self) -> torch.device:
        """Where the fields live."""
        return self.pos.device

    @property
    def real(self) -> Bool:
        """(B, T), true at real tokens, false at padding and unfilled slots."""
        return torch.ones_like(self.pos, dtype=torch.bool) if self.doc is None else self.doc >= 0

    def axes(self, n: int) -> Int:
        """(B, T, n): the coordinates of each token along n axes; the position, on each of them, where it has no others.

        Raises BadValue where tokens sit at another number of coordinates.
        """
        if self.coords is None:
            return self.pos.unsqueeze(-1).expand(-1, -1, n)
        if self.coords.shape[-1] != n:
            raise BadValue(
                f"the layout places tokens along {self.coords.shape[-1]} axes, but {n} are read: lay them out along "
                f"{n}, or choose an encoding of {self.coords.shape[-1]}"
            )
        return self.coords

    def at_coords(self, coords: Int, moved: bool = False) -> "Layout":
        """The same tokens at coordinates (T, A), or (B, T, A) by row. moved: positions become the largest of each."""
        B, T = self.shape
        expected = f"coordinates ({T}, axes) or ({B}, {T}, axes)"
        coords = numbers("coords", coords, expected, self.device)
        alike = coords.dim() == 2 or (coords.dim() == 3 and B == 1)
        if coords.shape[:-1] not in ((T,), (B, T)) or not coords.shape[-1] or coords.dtype == torch.bool:
            raise wrong("coords", coords, expected)
        coords = (coords[None] if coords.dim() == 2 else coords).expand(B, -1, -1)
        if not moved:
            return replace(self, coords=coords, kind="placed" if self.kind == "dense" and not alike else self.kind)
        pos = coords.amax(-1)
        top = pos.where(self.real, -1).amax(1, keepdim=True) + 1
        kind: Kind = "padded" if self.kind in ("dense", "padded") else self.kind
        return replace(self, pos=pos, length=top.expand_as(pos), coords=coords, kind=kind)

    def _map(self, f: Any, kind: Kind | None = None) -> "Layout":
        doc = None if self.doc is None else f(self.doc)
        coords = None if self.coords is None else f(self.coords)
        pos = f(self.pos)
        step = pos if self.step is self.pos else f(self.step)
        return Layout(pos, step, doc, f(self.length), kind or self.kind, coords)

    def _gapped(self) -> Kind:
        """The kind of some of these tokens, where they may not follow one another."""
        return "custom" if self.kind in ORDERED else self.kind

    def to(self, device: torch.device | str) -> "Layout":
        """The same layout on another device."""
        if not torch.compiler.is_compiling():
            check_device(device)
        return self if self.pos.device == torch.device(device) else self._map(lambda x: x.to(device))

    def tokens(self, part: slice) -> "Layout":
        """The tokens `part` of every row (a slice of the second axis)."""
        return self._map(lambda x: x[:, part], None if part.step in (None, 1) else self._gapped())

    def slots(self, index: Int) -> "Layout":
        """Of every row the tokens at its own indices (B, S')."""
        return self._map(lambda x: x[torch.arange(len(index), device=index.device)[:, None], index], self._gapped())

    def rows(self, index: Int) -> "Layout":
        """The rows `index` (B',), in that order: what beam search and `reorder` need."""
        return self._map(lambda x: x.index_select(0, index))

    def expand(self, B: int) -> "Layout":
        """One row stretched to B rows; B rows are returned as they are."""
        if not torch.compiler.is_compiling():
            must_be("B", B, int)
        if self.shape[0] == B:
            return self
        if self.shape[0] != 1:
            raise BadValue(f"the layout has {self.shape[0]} rows but the batch has {B}")
        return self._map(lambda x: x.expand(B, *x.shape[1:]))

    def one_row(self) -> "Layout":
        """The first row where all rows are alike by promise (dense), everything otherwise: saves work in tables."""
        return self._map(lambda x: x[:1]) if self.kind == "dense" else self

    def pair(self, b: Int, i: Int) -> "Layout":
        """The fields of token i of row b, as scalars: how fused kernels read a layout."""
        return self._map(lambda x: x[b, i])

    def as_queries(self) -> "Layout":
        """Fields as (B, 1, T, 1), ready to broadcast against keys."""
        return self._map(lambda x: x[:, None, :, None])

    def as_keys(self) -> "Layout":
        """Fields as (B, 1, 1, S), ready to broadcast against queries."""
        return self._map(lambda x: x[:, None, None, :])

    def _repr_html_(self, rows: int = 8, columns: int = 48) -> str:
        pos, doc = self.pos[:rows, :columns], (torch.zeros_like(self.pos) if self.doc is None else self.doc)
        B, T = self.shape
        more = f"positions of {B} x {T} tokens, {self.kind}" + ("" if pos.shape == self.pos.shape else ", cut off here")
        return shown_cells(pos.tolist(), doc[:rows, :columns].tolist(), more)

    # ------------------------------------------------------------------ growing
    def then(self, n: int) -> "Layout":
        """The next n tokens of each row's last document (an empty row starts one), as a layout of shape (B, n)."""
        if not torch.compiler.is_compiling():
            must_be("n", n, int)
            if n < 0:
                raise BadValue(f"n is a number of tokens, at least 0; got {n}")
        B = self.shape[0]
        ahead = torch.arange(1, n + 1, device=self.device)
        if self.shape[1] == 0:
            return Layout.dense(B, n, self.device)
        if self.kind == "dense":
            pos = self.pos[:, -1:] + ahead
            # one tensor stays one: compiled code is compiled anew where two of its inputs begin or cease to be the same
            step = pos if self.step is self.pos else self.step[:, -1:] + ahead
            return Layout(pos, step, None, pos[:, -1:].expand_as(pos) + 1, "dense")
        step = torch.where(self.real, self.step, -1)  # (B, T)
        last = step.argmax(1, keepdim=True)  # (B, 1): slot of the newest real token
        doc = None if self.doc is None else self.doc.gather(1, last).clamp(min=0)
        # a prefix shares one step, so the newest position is the largest among the newest document's tokens
        mine = self.real if self.doc is None or doc is None else self.doc == doc
        pos = torch.where(mine, self.pos, -1).amax(1, keepdim=True) + ahead
        one = self.kind == "padded" and self.step is self.pos  # as above: one tensor stays one
        step = pos if one else step.amax(1, keepdim=True) + ahead
        doc = None if doc is None else doc.expand_as(step)
        return Layout(pos, step, doc, pos[:, -1:].expand_as(pos) + 1, self.kind)

    def cat(self, other: "Layout") -> "Layout":
        """These tokens and then `other`'s, side by side in memory. Dense and placed ones must follow one another."""
        check_layouts(other=other)
        if self.kind == other.kind == "dense":
            pos = torch.cat([self.pos, other.pos], 1)
            same = self.step is self.pos and other.step is other.pos
            step = pos if same else torch.cat([self.step, other.step], 1)
            return Layout(pos, step, None, other.length[:, -1:].expand_as(pos), "dense", self._coords_and(other))
        pair: set[Kind] = {self.kind, other.kind}
        mixed: Kind = "padded" if pair == {"dense", "padded"} else "placed" if pair == {"dense", "placed"} else "custom"
        kind: Kind = other.kind if len(pair) == 1 else mixed
        doc = None
        if self.doc is not None or other.doc is not None:
            doc = torch.cat([torch.where(a.real, 0, -1) if a.doc is None else a.doc for a in (self, other)], 1)
        pos, length = torch.cat([self.pos, other.pos], 1), torch.cat([self.length, other.length], 1)
        one = self.step is self.pos and other.step is other.pos
        step = pos if one else torch.cat([self.step, other.step], 1)
        return Layout(pos, step, doc, length, kind, self._coords_and(other))

    def _coords_and(self, other: "Layout") -> Int | None:
        """The coordinates of these tokens and of others; None where all are positions."""
        known = [at.coords.shape[-1] for at in (self, other) if at.coords is not None]
        return torch.cat([at.axes(known[0]) for at in (self, other)], 1) if known else None


def sees(q: Layout, k: Layout, causal: bool = True, window: int | None = None, sink_tokens: int = 0) -> Bool:
    """Who may see whom, from fields of any shapes that broadcast (also scalars): `visible` without the reshaping."""
    gap = q.step - k.step
    if k.doc is None:
        ok = torch.ones_like(gap, dtype=torch.bool)
    elif q.doc is None:
        if k.kind == "packed":
            raise BadValue("packed keys need queries that say which document they belong to: give the queries a doc")
        ok = (k.doc >= 0).expand_as(gap)
    else:
        ok = (q.doc == k.doc) & (k.doc >= 0)
    if causal:
        ok = ok & (gap >= 0)
    if window is not None:
        near = (gap < window) if causal else (gap.abs() < window)
        ok = ok & (near if sink_tokens == 0 else near | (k.pos < sink_tokens))
    return ok


def layout_of(
    given: Any, B: int, T: int, device: torch.device, name: str = "at", takes_positions: bool = False
) -> Layout:
    """The Layout of B rows of T tokens: dense where none was given, else the given one stretched over the rows.

    takes_positions: for what reads positions and nothing else, bare numbers say them. Elsewhere they are refused: a
    tensor of 0 and 1 could as well be a mask of real tokens, and would be read as the wrong one without a word.
    """
    if given is None:
        return Layout.dense(B, T, device)
    if not isinstance(given, Layout):
        if not takes_positions:
            check_layouts(**{name: given})
        given = Layout.placed(given, device)
    at: Layout = given.to(device).expand(B)
    if at.shape[1] != T:
        raise BadValue(f"the layout places {at.shape[1]} tokens a row, but {T} were given")
    return at


def check_layouts(**given: object) -> None:
    """Raise BadValue, naming it, for anything else where a Layout belongs."""
    for name, at in given.items():
        if not isinstance(at, Layout):
            how = "for a mask of real tokens gn.Layout.padded(mask), for positions gn.Layout.placed(positions)"
            raise wrong(name, at, "a Layout", how)


def visible(q: Layout, k: Layout, causal: bool = True, window: int | None = None, sink_tokens: int = 0) -> Bool:
    """Which of k's tokens each of q's tokens may attend to: (B, 1, T, S), true where it may.

    causal       a token sees itself and what came before it
    window       a token sees the nearest `window` tokens, itself included: `0 <= gap < window` when causal,
                 `abs(gap) < window` when not. Documents and padding never see one another.
    sink_tokens  tokens at positions below this are seen from outside the window too, by those of their document whom
                 causality lets (Xiao et al. 2024, arXiv:2309.17453, section 3.2)
    """
    check_layouts(q=q, k=k)
    must_be("causal", causal, bool)
    must_be("window", window, int | None)
    must_be("sink_tokens", sink_tokens, int)
    if window is not None and window < 1:
        raise BadValue(f"a window counts the token itself, so it must be at least 1; got {window}")
    return sees(q.as_queries(), k.as_keys(), causal, window, sink_tokens)


def _flatten(at: Layout) -> tuple[list[Any], tuple[Kind, bool, bool]]:
    some = [x for x in (at.doc, at.coords) if x is not None]
    return [at.pos, at.step, at.length, *some], (at.kind, at.doc is not None, at.coords is not None)


def _unflatten(fields: Any, static: Any) -> Layout:
    pos, step, length, *some = fields
    kind, has_doc, has_coords = static
    return Layout(pos, step, some[0] if has_doc else None, length, kind, some[-1] if has_coords else None)


register_pytree_node(Layout, _flatten, _unflatten)

__all__ = ["ORDERED", "Kind", "Layout", "Positions", "check_device", "check_layouts", "layout_of", "sees", "visible"]
