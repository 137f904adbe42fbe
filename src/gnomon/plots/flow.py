"""The picture of an inspection: ids, vectors, position, attention, output and answer on one page."""

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gnomon.glossary import Words, words
from gnomon.plots.inspection import Inspection, Reading
from gnomon.plots.picture import Picture, draw
from gnomon.plots.style import BLUE, MUTED, SHARE, SIGNED, canvas, colour_bar, drawable, gnomon_style, heat
from gnomon.shapes import Float

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

MOST_LAYERS, MOST_HEADS, MOST_NAMES = 4, 4, 24


@draw.register(Inspection)
def flow(seen: Inspection, lang: str = "en") -> Picture:
    """Draw an inspection. Of many layers or heads, up to four of each are shown, the first and the last among them."""
    w = words("inspect", lang)
    title, note = w(f"title_{seen.answer}", count=len(seen.ids)), w(f"note_{seen.answer}")
    if seen.source is not None:
        title, note = w("title_source", count=len(seen.source.ids)), w("note_source")
    with gnomon_style():
        if seen.source is None:
            figure = canvas(title, note, (12.0, 8.2))
            left, right = _areas(figure.subfigures(1, 2, width_ratios=(3.1, 1)))
            _reading(left, seen, w, MOST_HEADS)
            top, bottom = _areas(right.subfigures(2, 1, height_ratios=(1, 1.7)))
            _output(top, seen, w)
        else:
            figure = canvas(title, note, (18.0, 8.6))
            left, middle, right = _areas(figure.subfigures(1, 3, width_ratios=(1.25, 1.25, 1)))
            _reading(left, seen.source, w, MOST_HEADS - 1, w("source_side"))
            _reading(middle, seen, w, MOST_HEADS - 1, w("target_side"))
            top, bottom = _areas(right.subfigures(2, 1, height_ratios=(1.7, 1)))
            _attention(top, seen.cross, seen.tokens, seen.source.tokens, w("cross"), w, 2)
        _answer(bottom, seen, w)
    return Picture(figure, f"{title}. {note}", {"ids": seen.ids, "tokens": seen.tokens}, lang)


def _areas(made: Any) -> "list[SubFigure]":
    return list(made)


def _reading(area: "SubFigure", seen: Reading, w: Words, most_heads: int, side: str = "") -> None:
    """Vectors and positions over the attention weights."""
    top, bottom = _areas(area.subfigures(2, 1, height_ratios=(1, 1.7)))
    if side:
        top.suptitle(side, x=0.01, ha="left", fontsize=11, fontweight="bold")
    _vectors(top, seen, w)
    _attention(bottom, seen.attention, seen.tokens, seen.tokens, w("attention"), w, most_heads)


def _vectors(area: "SubFigure", seen: Reading, w: Words) -> None:
    """Token vectors + position = input on one scale; or the vectors, and what the encoding does in attention."""
    if seen.position is None:
        _vectors_beside_position(area, seen, w)
        return
    (name,) = (encoding.name for encoding in seen.encodings)
    matrices = [x.numpy().T for x in (seen.vectors, seen.position, seen.hidden[0])]
    titles = (w("token_vectors"), w("added", name=name), w(seen.enters))
    row = area.subplots(1, 3, sharey=matrices[0].shape == matrices[1].shape)
    summed = (
        seen.enters == "input"
    )  # else each has a scale of its own: what a norm gives is larger than what it is given
    high = max(float(np.abs(m).max()) for m in matrices)
    for axes, matrix, title in zip(row, matrices, titles, strict=True):
        image = heat(axes, matrix, -high, high, SIGNED) if summed else heat(axes, matrix)
        axes.set_title(title)
        _name_tokens(axes, _with_ids(seen) if axes is row[0] else seen.tokens, "x")
        if not summed:
            colour_bar(area, image, axes, "")
    row[0].set_ylabel(w("dimension"))
    if summed:
        colour_bar(area, image, list(row), "")


def _vectors_beside_position(area: "SubFigure", seen: Reading, w: Words) -> None:
    encoding = seen.encodings[0]
    matrix, _ = encoding.preview(len(seen.ids))
    row = area.subplots(1, 2, width_ratios=(1, 1))
    image = heat(row[0], seen.vectors.numpy().T, colours=SIGNED)
    row[0].set(title=w("token_vectors"), ylabel=w("dimension"))
    _name_tokens(row[0], _with_ids(seen), "x")
    colour_bar(area, image, row[0], "")
    if matrix is None:
        row[1].axis("off")
        in_attention = encoding.acts == "attention"
        row[1].set_title(w("attention_place", name=encoding.name) if in_attention else w("nowhere"))
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


def _attention(
    area: "SubFigure", weights: list[Float], rows: list[str], columns: list[str], title: str, w: Words, most_heads: int
) -> None:
    """A row a layer, a column a head; queries down, keys across. Small weights are drawn stronger than they are."""
    layers = _spread(len(weights), MOST_LAYERS)
    if not layers:
        return
    heads = _spread(weights[0].shape[0], most_heads)
    area.suptitle(title, x=0.01, ha="left", fontsize=9.5)
    grid = area.subplots(len(layers), len(heads), squeeze=False)
    most = MOST_NAMES // max(len(layers) // 2, 1)
    for (i, layer), (j, head) in product(enumerate(layers), enumerate(heads)):
        axes = grid[i, j]
        image = heat(axes, weights[layer][head].numpy(), 0, 1, SHARE, faint=True)
        _name_tokens(axes, columns if i == len(layers) - 1 and len(columns) <= most else [], "x", 7)
        _name_tokens(axes, rows if j == 0 and len(rows) <= most else [], "y", 7)
        if i == 0:
            axes.set_title(w("head_number", number=head + 1))
        if j == 0:
            axes.set_ylabel(w("layer_number", number=layer + 1))
    colour_bar(area, image, list(grid.flat), "")


def _output(area: "SubFigure", seen: Inspection, w: Words) -> None:
    """What the head reads."""
    axes = area.subplots()
    image = heat(axes, seen.output.numpy().T)
    axes.set(title=w("output_vectors"), ylabel=w("dimension"))
    _name_tokens(axes, seen.tokens if len(seen.tokens) <= MOST_NAMES // 2 else [], "x")
    colour_bar(area, image, axes, "")


def _answer(area: "SubFigure", seen: Inspection, w: Words) -> None:
    """What the head says: a vector of the text, or guesses with their probabilities, the best or the first at the
    top."""
    axes = area.subplots()
    if seen.vector is not None:
        axes.bar(range(len(seen.vector)), seen.vector.numpy(), width=1, color=BLUE)
        axes.axhline(0, color=MUTED, linewidth=0.6)
        axes.set(title=w("answer_vector"), xlabel=w("dimension"), xlim=(-1, len(seen.vector)))
        return
    shown = seen.guesses[: MOST_NAMES + 8]
    p = [guess.probability for guess in shown]
    names = [guess.token for guess in shown]
    if seen.answer == "each":
        names = [f"{token} \N{RIGHTWARDS ARROW} {name}" for token, name in zip(seen.tokens, names, strict=False)]
    places = range(len(p))
    axes.barh(places, p, color=BLUE, height=0.66)
    axes.set_yticks(places, [drawable(name) for name in names])
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    axes.invert_yaxis()
    axes.set(title=w(f"answer_{seen.answer}"), xlabel=w("probability"), xlim=(0, max(p) * 1.28))
    axes.tick_params(axis="y", length=0)
    for place, share in zip(places, p, strict=True):
        axes.annotate(
            w.number(share, _digits(share)),
            (share, place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
            color=MUTED,
        )


def _digits(share: float) -> str:
    """How a share is written in percent: with two digits that count."""
    return ".2%" if share < 0.01 else ".1%" if share < 0.1 else ".0%"


def _with_ids(seen: Reading) -> list[str]:
    return [name if name == str(i) else f"{name} {i}" for name, i in zip(seen.tokens, seen.ids, strict=True)]


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
