"""Masks as pictures: who may see whom, drawn from `Layout.mask`, the only mask there is."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import torch

from gnomon.errors import BadValue, check_arguments, unknown
from gnomon.glossary import Words, words
from gnomon.layout import Layout
from gnomon.plots.picture import Picture, check_drawable
from gnomon.plots.style import BLUE, FAINT, MUTED, gnomon_style, panels
from gnomon.shapes import Bool

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = ("causal", "bidirectional", "padding", "packed", "window", "prefix")
GALLERY = (
    ("causal",),
    ("bidirectional",),
    ("causal", "padding"),
    ("causal", "packed"),
    ("causal", "window"),
    ("causal", "prefix"),
    ("packed", "window"),
    ("padding", "prefix"),
)
NAMED = 20  # tokens up to which each is named by its position


@check_arguments
def mask(
    of: Layout | str | Sequence[str] = (),
    length: int = 10,
    window: int | None = None,
    causal: bool = True,
    lang: str = "en",
) -> Picture:
    """Who may see whom: queries down, keys across, a cell coloured where a query sees a key.

    of      a Layout, whose first row is drawn; or kinds to combine, among "causal", "bidirectional", "padding",
            "packed", "window", "prefix"; or nothing, for all kinds and two combinations side by side
    length  tokens, where kinds are named; window: tokens that a window has, itself included (with kinds: 3 by default)
    causal  of a Layout; kinds are causal unless "bidirectional" is one of them

    facts: "masks", for each panel its kinds, window, positions (None at padding) and rows of 0 and 1
    """
    w = words("masks", lang)
    drawn: list[tuple[str, Layout, bool, int | None]] = []
    if isinstance(of, Layout):
        drawn = [(w("yours"), of, causal, window)]
    else:
        named = [of] if isinstance(of, str) else list(of)
        check_drawable(len(GALLERY) * max(length, 1) ** 2, f"masks of {length} tokens")
        for kinds in [tuple(named)] if named else GALLERY:
            at = layout_of_kinds(kinds, length)
            wide = (3 if window is None else window) if "window" in kinds else None
            drawn.append((" + ".join(w(kind) for kind in kinds), at, "bidirectional" not in kinds, wide))
    columns = min(4, len(drawn))
    rows = -(-len(drawn) // columns)
    title, note = w("title"), w("note")
    facts = []
    with gnomon_style():
        size = (max(5.2, 3.1 * columns + 0.4), 0.9 + 3.3 * rows * (1.5 if len(drawn) == 1 else 1))
        figure, grid = panels(title, note, size, rows=rows, columns=columns)
        for axes, (name, at, looks_back, wide) in zip(chain.from_iterable(grid), drawn, strict=True):
            seen = at.mask(causal=looks_back, window=wide)[0, 0]
            _draw(axes, seen, at, w)
            axes.set_title(name)
            facts.append({"kinds": name, "window": wide, "positions": _positions(at), "mask": seen.int().tolist()})
    return Picture(figure, f"{title}: {'; '.join(name for name, *_ in drawn)}. {note}", {"masks": facts}, lang)


def layout_of_kinds(kinds: Sequence[str], length: int) -> Layout:
    """One row of `length` tokens: with padding in front, two documents, or a prefix that sees itself, as named."""
    for kind in kinds:
        if kind not in KINDS:
            raise unknown("kind of mask", kind, KINDS)
    if {"causal", "bidirectional"} <= set(kinds):
        raise BadValue("a mask is causal or bidirectional: name one of the two")
    if length < 4:
        raise BadValue(f"a picture of these masks needs at least 4 tokens, got {length}")
    pad = length // 4 if "padding" in kinds else 0
    real = torch.arange(length)[None] >= pad
    at = Layout.padded(real) if pad else Layout.dense(1, length)
    if "packed" in kinds:
        second = pad + (length - pad) // 2  # where the second document begins
        late = torch.arange(length)[None] >= second
        pos = torch.where(late, at.pos - (second - pad), at.pos)
        sizes = torch.where(late, length - second, second - pad)
        at = Layout(pos, at.step, torch.where(real, late.long(), -1), sizes, "packed")
    if "prefix" in kinds:  # in each document the first tokens share one step, as in Layout.prefix
        n = max(2, (length - pad) // (6 if "packed" in kinds else 3))
        at = replace(at, step=torch.where(at.real & (at.pos < n), at.step - at.pos + n - 1, at.step), kind="custom")
    return at


def _positions(at: Layout) -> list[int | float | None]:
    return [p if real else None for p, real in zip(at.pos[0].tolist(), at.real[0].tolist(), strict=True)]


def _draw(axes: "Axes", seen: Bool, at: Layout, w: Words) -> None:
    """A cell a pair: coloured where the query sees the key, grey where either is padding."""
    from matplotlib.colors import ListedColormap

    real = at.real[0].cpu()
    cells = torch.where(real[:, None] & real[None], seen.cpu().int() * 2, 1)  # 0 hidden, 1 padding, 2 seen
    T = len(cells)
    axes.imshow(cells.numpy(), cmap=ListedColormap(["white", FAINT, BLUE]), vmin=0, vmax=2, interpolation="nearest")
    if T <= 3 * NAMED:
        axes.set_xticks([i - 0.5 for i in range(1, T)], minor=True)
        axes.set_yticks([i - 0.5 for i in range(1, T)], minor=True)
        axes.grid(which="minor", color="#c4cad4", linewidth=0.5)
    axes.set_axisbelow(False)
    names = [f"{p:g}" if p is not None else "\N{EN DASH}" for p in _positions(at)] if T <= NAMED else []
    axes.set_xticks(range(len(names)), names)
    axes.set_yticks(range(len(names)), names)
    axes.set(xlabel=w("key"), ylabel=w("query"))
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(True)
    axes.spines[:].set_color(MUTED)


__all__ = ["GALLERY", "KINDS", "layout_of_kinds", "mask"]
