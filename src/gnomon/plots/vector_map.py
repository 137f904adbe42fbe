"""A map of vectors: tokens or sentences on the plane where they differ most."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gnomon.errors import BadValue
from gnomon.glossary import words
from gnomon.models.similarity import plane
from gnomon.plots.picture import Picture
from gnomon.plots.style import BLUE, GREEN, INK, MUTED, ORANGE, PURPLE, drawable, gnomon_style, graded_colours, panels
from gnomon.shapes import Float

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

COLOURS = (BLUE, ORANGE, GREEN, PURPLE)
Kind = Literal["tokens", "sentences"]
LONGEST = 34  # characters of a name on the map
SMALL, LARGE = 8.0, 9.5  # points
NAMED = 150  # names that are tried, at most; with fewer, no name stands on another's dot


def vector_map(
    vectors: Float, names: Sequence[str], groups: Sequence[int | None], of: Kind = "tokens", lang: str = "en"
) -> Picture:
    """Draw vectors (N, D) on the plane of their largest variance.

    of      what they are vectors of, for the header

    names   of each; one that has no room beside its dot is left out, those that come first in a group are tried first
    groups  of each the number of its group, which gives it a colour, or None for a plain dot. The first of a group is
            what the group is about, and stands out.
    """
    if not len(vectors) == len(names) == len(groups):
        raise BadValue(f"there are {len(vectors)} vectors, {len(names)} names and {len(groups)} groups: give as many")
    w = words("map", lang)
    title, note = w("title"), w(f"note_{of}")
    places, shares = (x.numpy() for x in plane(vectors))
    kinds = sorted({g for g in groups if g is not None})
    colours = COLOURS[: len(kinds)] if len(kinds) <= len(COLOURS) else graded_colours(len(kinds))
    colour_of: dict[int | None, str] = {None: MUTED, **dict(zip(kinds, colours, strict=True))}
    heads = {groups.index(g) for g in kinds}
    with gnomon_style():
        figure, [[axes]] = panels(title, note, (8.0, 6.2))
        plain = [i for i, g in enumerate(groups) if g is None]
        axes.scatter(places[plain, 0], places[plain, 1], s=7, color=MUTED, alpha=0.45, linewidths=0)
        for g in kinds:
            own = [i for i, h in enumerate(groups) if h == g]
            sizes = [52 if i in heads else 20 for i in own]
            axes.scatter(places[own, 0], places[own, 1], s=sizes, color=colour_of[g], linewidths=0)
        axes.set(
            xlabel=w("first", share=float(shares[0])),
            ylabel=w("second", share=float(shares[1])),
            xticks=[],
            yticks=[],
        )
        axes.margins(0.1)
        order = sorted(range(len(names)), key=lambda i: (groups[i] is None, i not in heads))[:NAMED]
        labels = [
            (places[i], _short(names[i]), colour_of[groups[i]] if groups[i] is not None else INK, i in heads)
            for i in order
        ]
        written = _write(figure, axes, labels)
    return Picture(figure, f"{title}. {note}", {"variance": shares.tolist(), "places": places, "named": written}, lang)


def _short(name: str) -> str:
    return drawable(name if len(name) <= LONGEST else name[: LONGEST - 1] + "\N{HORIZONTAL ELLIPSIS}")


def _write(figure: "Figure", axes: "Axes", labels: Sequence[tuple[Any, str, str, bool]]) -> int:
    """Put a name beside each dot where there is room for it; returns how many found room."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.transforms import Bbox

    FigureCanvasAgg(figure)  # which measures text
    figure.draw_without_rendering()  # the layout is settled now, so that places on the page are known
    frame = axes.get_window_extent()
    dots = axes.transData.transform([place for place, *_ in labels if len(labels) < NAMED])
    taken = [Bbox.from_bounds(x - 4, y - 4, 8, 8) for x, y in dots]
    written = 0
    for place, name, colour, stands_out in labels:
        x, y = axes.transData.transform(place)
        style: dict[str, Any] = {"fontsize": LARGE, "fontweight": "bold"} if stands_out else {"fontsize": SMALL}
        for offset, ha, va in _label_spots():
            text = axes.annotate(
                name,
                place,
                xytext=offset,
                textcoords="offset points",
                ha=ha,
                va=va,
                color=colour,
                annotation_clip=False,
                **style,
            )
            box = text.get_window_extent().padded(1.0)
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
            if inside and not any(box.overlaps(other) for other in taken if not _is_at(other, x, y)):
                taken.append(box)
                written += 1
                break
            text.remove()
    return written


def _label_spots() -> Iterator[tuple[tuple[float, float], str, str]]:
    """Where a name may stand: right, left, above, below of its dot, then at the corners, then a little further off."""
    for reach in (6.0, 11.0):
        yield (reach, 0), "left", "center"
        yield (-reach, 0), "right", "center"
        yield (0, reach), "center", "bottom"
        yield (0, -reach), "center", "top"
        for x, y in product((1, -1), repeat=2):
            yield (x * reach * 0.7, y * reach * 0.7), "left" if x > 0 else "right", "bottom" if y > 0 else "top"


def _is_at(box: "Bbox", x: float, y: float) -> bool:
    """Whether a box is that of the dot at x, y itself."""
    return bool(np.allclose(((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2), (x, y), atol=0.5))


__all__ = ["vector_map"]
