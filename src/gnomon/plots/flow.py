"""The picture of an inspection: ids, vectors, position, attention and the next token on one page (S11)."""

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gnomon.glossary import Words, words
from gnomon.plots.inspection import Inspection
from gnomon.plots.picture import Picture
from gnomon.plots.style import BLUE, MUTED, SHARE, SIGNED, canvas, colour_bar, drawable, drawing, heat

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

MOST_LAYERS, MOST_HEADS, MOST_NAMES = 4, 4, 24


def flow(seen: Inspection, lang: str = "en") -> Picture:
    """Draw an inspection. Of many layers or heads, up to four of each are shown, the first and the last among them."""
    w = words("inspect", lang)
    title, note = w("title", count=len(seen.ids)), w("note")
    with drawing():
        figure = canvas(title, note, (11.0, 8.2))
        left, right = _areas(figure.subfigures(1, 2, width_ratios=(3.1, 1)))
        top, bottom = _areas(left.subfigures(2, 1, height_ratios=(1, 1.7)))
        _vectors(top, seen, w)
        _attention(bottom, seen, w)
        _guesses(right, seen, w)
    return Picture(figure, f"{title}. {note}", {"ids": seen.ids, "tokens": seen.tokens}, lang)


def _areas(made: Any) -> "list[SubFigure]":
    return list(made)


def _vectors(area: "SubFigure", seen: Inspection, w: Words) -> None:
    """Token vectors + position = input on one scale; or the vectors, and what the encoding does in attention."""
    if seen.position is None:
        _vectors_beside_position(area, seen, w)
        return
    (name,) = (encoding.name for encoding in seen.encodings)
    matrices = [x.numpy().T for x in (seen.vectors, seen.position, seen.hidden[0])]
    titles = (w("token_vectors"), w("added", name=name), w("input"))
    high = max(float(np.abs(m).max()) for m in matrices)
    row = area.subplots(1, 3, sharey=True)
    for axes, matrix, title in zip(row, matrices, titles, strict=True):
        image = heat(axes, matrix, -high, high, SIGNED)
        axes.set_title(title)
        _name_tokens(axes, seen.tokens, "x")
    row[0].set_ylabel(w("dimension"))
    colour_bar(area, image, list(row), "")


def _vectors_beside_position(area: "SubFigure", seen: Inspection, w: Words) -> None:
    encoding = seen.encodings[0]
    matrix, _ = encoding.look(len(seen.ids))
    row = area.subplots(1, 2, width_ratios=(1, 1))
    image = heat(row[0], seen.vectors.numpy().T, colours=SIGNED)
    row[0].set(title=w("token_vectors"), ylabel=w("dimension"))
    _name_tokens(row[0], seen.tokens, "x")
    colour_bar(area, image, row[0], "")
    if matrix is None:
        row[1].axis("off")
        row[1].set_title(w("nowhere"))
        return
    shown = np.where(np.isfinite(matrix.numpy()), matrix.numpy(), np.nan)
    image = heat(row[1], shown, *_around_zero(shown), SIGNED)
    row[1].set(title=w(encoding.acts, name=encoding.name), ylabel=w("pair" if encoding.acts == "rotation" else "head"))
    if len(shown) <= MOST_NAMES:
        row[1].set_yticks(range(len(shown)), [str(n + 1) for n in range(len(shown))])
    _name_tokens(row[1], seen.tokens, "x")
    colour_bar(area, image, row[1], "")


def _around_zero(matrix: npt.NDArray[np.float32]) -> tuple[float, float]:
    high = float(np.nanmax(np.abs(matrix))) or 1.0
    return -high, high


def _attention(area: "SubFigure", seen: Inspection, w: Words) -> None:
    """A row a layer, a column a head; queries down, keys across. Small weights are drawn stronger than they are."""
    layers = _spread(len(seen.attention), MOST_LAYERS)
    if not layers:
        return
    heads = _spread(seen.attention[0].shape[0], MOST_HEADS)
    area.suptitle(w("attention"), x=0.01, ha="left", fontsize=9.5)
    grid = area.subplots(len(layers), len(heads), squeeze=False)
    names = seen.tokens if len(seen.tokens) <= MOST_NAMES // max(len(layers) // 2, 1) else []
    for (i, layer), (j, head) in product(enumerate(layers), enumerate(heads)):
        axes = grid[i, j]
        image = heat(axes, seen.attention[layer][head].numpy(), 0, 1, SHARE, faint=True)
        _name_tokens(axes, names if i == len(layers) - 1 else [], "x", 7)
        _name_tokens(axes, names if j == 0 else [], "y", 7)
        if i == 0:
            axes.set_title(w("head_number", number=head + 1))
        if j == 0:
            axes.set_ylabel(w("layer_number", number=layer + 1))
    colour_bar(area, image, list(grid.flat), "")


def _guesses(area: "SubFigure", seen: Inspection, w: Words) -> None:
    """The most probable next tokens, the best at the top."""
    axes = area.subplots()
    p = [guess.probability for guess in seen.guesses]
    places = range(len(p))
    axes.barh(places, p, color=BLUE, height=0.66)
    axes.set_yticks(places, [drawable(guess.token) for guess in seen.guesses])
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    axes.invert_yaxis()
    axes.set(title=w("next"), xlabel=w("probability"), xlim=(0, max(p) * 1.28))
    axes.tick_params(axis="y", length=0)
    for place, share in zip(places, p, strict=True):
        axes.annotate(
            w.number(share, _digits(share)), (share, place), xytext=(4, 0), textcoords="offset points",
            va="center", fontsize=8.5, color=MUTED,
        )  # fmt: skip


def _digits(share: float) -> str:
    """How a share is written in percent: with two digits that count."""
    return ".2%" if share < 0.01 else ".1%" if share < 0.1 else ".0%"


def _name_tokens(axes: "Axes", tokens: list[str], which: str, size: float = 8.0) -> None:
    """The tokens along an axis, or no marks at all where they are too many to be read."""
    shown = [drawable(token) for token in tokens] if len(tokens) <= MOST_NAMES else []
    if which == "x":
        axes.set_xticks(range(len(shown)), shown, rotation=90 if any(len(t) > 2 for t in shown) else 0, fontsize=size)
    else:
        axes.set_yticks(range(len(shown)), shown, fontsize=size)


def _spread(n: int, most: int) -> list[int]:
    """Up to `most` of 0..n-1, evenly spread, first and last included."""
    return sorted({round(x) for x in np.linspace(0, n - 1, min(n, most))}) if n else []


__all__ = ["flow"]
