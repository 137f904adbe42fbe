"""Pictures of the vectors that an encoding adds at the input."""

import numpy as np
import numpy.typing as npt
import torch

from gnomon.errors import BadValue, check_arguments
from gnomon.glossary import Words, words
from gnomon.layout import Layout
from gnomon.plots.picture import Picture, check_drawable
from gnomon.plots.resolve import Position, build_position, is_trained
from gnomon.plots.style import BLUE, colour_bar, gnomon_style, heat, panels
from gnomon.positions import Learned, PositionEncoding


@check_arguments
def heat_map(
    position: Position = "sinusoidal", length: int | None = None, d_model: int = 128, lang: str = "en"
) -> Picture:
    """The table of an encoding that acts at the input: positions on x, dimensions on y, red to blue.

    position  a name, gn.positions.get(...), or a module of a trained model (its own width then)
    length    positions shown; default: all rows of a learned table of a trained model, otherwise 100
    """
    w = words("plots", lang)
    vectors, encoding = _table(position, length or _rows(position, 100), d_model)
    title, note = _title(encoding, w), _note(encoding, position, w)
    with gnomon_style():
        figure, [[axes]] = panels(title, note, (7.2, 4.6))
        image = heat(axes, vectors.T, upright=True)
        axes.set(xlabel=w("position"), ylabel=w("dimension"))
        colour_bar(figure, image, axes, w("value"))
    return Picture(figure, f"{title}. {note}", {"length": vectors.shape[0], "d_model": vectors.shape[1]}, lang)


@check_arguments
def similarity(
    position: Position = "sinusoidal", length: int | None = None, d_model: int = 128, lang: str = "en"
) -> Picture:
    """Cosine between the vectors of every two positions, and the curve from the middle position to all others.

    The arguments are those of `heat_map`; `length` is 128 where nothing else is said.
    """
    w = words("plots", lang)
    length = length or _rows(position, 128)
    check_drawable(length**2, f"{length} times {length} positions")
    vectors, encoding = _table(position, length, d_model)
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    cosine, middle = unit @ unit.T, length // 2
    title = w("similarity_title", name=encoding.name)
    note = w("similarity_note") + _warn_untrained(encoding, position, w)
    with gnomon_style():
        figure, [[left, right]] = panels(title, note, (8.4, 4.2), columns=2, widths=(1, 1.05))
        image = heat(left, cosine, -1, 1, upright=True)
        left.set(xlabel=w("position"), ylabel=w("position"))
        left.set_aspect("equal")
        colour_bar(figure, image, left, w("cosine"))
        right.axhline(0, color="#c5cbd5", linewidth=0.8)
        right.plot(np.arange(length) - middle, cosine[middle], color=BLUE)
        right.set(xlabel=w("offset", middle=middle), ylabel=w("cosine"), ylim=(-1.05, 1.05))
    neighbours = float(np.diagonal(cosine, 1).mean()) if length > 1 else 1.0
    return Picture(figure, f"{title}. {note}", {"length": length, "cosine_of_neighbours": neighbours}, lang)


def _table(position: Position, length: int, d_model: int) -> tuple[npt.NDArray[np.float64], PositionEncoding]:
    check_drawable(length * d_model, f"{length} positions of width {d_model}")
    encoding = build_position(position, "input", d_model=d_model, max_positions=length)
    return vectors_of(encoding, length), encoding


def _rows(position: Position, default: int) -> int:
    """How many positions to show where nobody says it."""
    return position.max_positions if isinstance(position, Learned) else default


def vectors_of(encoding: PositionEncoding, length: int) -> npt.NDArray[np.float64]:
    """(length, D) what the encoding adds at positions 0..length-1. Raises BadValue past a learned table."""
    at = Layout.dense(1, length)
    encoding.check(at)
    with torch.no_grad():
        vectors = encoding.vectors(at, torch.float64)
    if vectors is None:
        raise BadValue(f"{encoding.name} says it acts at the input but gives no vectors")
    rows: npt.NDArray[np.float64] = vectors[0].double().cpu().numpy()
    return rows


def _title(encoding: PositionEncoding, w: Words) -> str:
    own = encoding.name in ("sinusoidal", "learned")
    return w(f"{encoding.name}_title") if own else w("table_title", name=encoding.name)


def _note(encoding: PositionEncoding, position: Position, w: Words) -> str:
    if encoding.name == "sinusoidal":
        return w("sinusoidal_note")
    return w("table_note") + _warn_untrained(encoding, position, w)


def _warn_untrained(encoding: PositionEncoding, position: Position, w: Words) -> str:
    """A warning that the table is noise, where it is."""
    random = any(True for _ in encoding.parameters()) and not is_trained(position)
    return f" {w('untrained_note')}" if random else ""


__all__ = ["heat_map", "similarity", "vectors_of"]
