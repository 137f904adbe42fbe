"""How every picture of Gnomon looks: one page of colours, sizes and a header. matplotlib is imported when one is drawn.

Colours keep their meaning: blue and orange tell two things apart for every kind of colour vision, red to blue is for
signed values around zero, white to blue for shares, a dark-to-light scale for things in order (heads, layers).
"""

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gnomon.glossary import grouped, localize

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure, FigureBase
    from matplotlib.image import AxesImage

INK, MUTED, FAINT = "#1b2330", "#667085", "#e4e7ec"
BLUE, ORANGE, GREEN, PURPLE = "#2166ac", "#d6722a", "#1b7f5c", "#7b4ea3"
SIGNED, SHARE, ORDERED = "RdBu_r", "Blues", "viridis"  # names of colour maps

_SETTINGS: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
    "font.size": 9.5,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.titlepad": 7,
    "axes.labelsize": 9.5,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.edgecolor": MUTED,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.grid": False,
    "grid.color": FAINT,
    "grid.linewidth": 0.8,
    "axes.axisbelow": True,
    "lines.linewidth": 1.8,
    "lines.solid_capstyle": "round",
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.fonttype": "none",
    "svg.hashsalt": "gnomon",
}


@contextmanager
def gnomon_style() -> Iterator[None]:
    """Gnomon's settings inside the `with`, the user's own again after it."""
    from matplotlib import rc_context

    with rc_context(_SETTINGS):
        yield


def canvas(title: str, subtitle: str, size: tuple[float, float]) -> "Figure":
    """An empty figure of `size` inches under a header: a title, and a sentence that says what is to be seen."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size)
    lines = textwrap.wrap(subtitle, int(size[0] * 13.6))
    header = 0.42 + 0.185 * len(lines) + (0.06 if lines else 0.0)
    figure.set_layout_engine("constrained", rect=(0.008, 0.01, 0.984, 1 - header / size[1] - 0.01), wspace=0.06)
    left = 0.13 / size[0]
    head = figure.suptitle(title, x=left, y=1 - 0.12 / size[1], ha="left", va="top", fontsize=13, fontweight="bold")
    head.set_in_layout(False)
    note = figure.text(
        left, 1 - 0.42 / size[1], "\n".join(lines), ha="left", va="top", fontsize=9.5, color=MUTED, linespacing=1.35
    )
    note.set_in_layout(False)
    return figure


def panels(
    title: str,
    subtitle: str = "",
    size: tuple[float, float] = (7.2, 4.4),
    rows: int = 1,
    columns: int = 1,
    widths: Sequence[float] | None = None,
    heights: Sequence[float] | None = None,
) -> "tuple[Figure, list[list[Axes]]]":
    """A canvas with a grid of axes; call it inside `drawing()`."""
    figure = canvas(title, subtitle, size)
    grid = figure.subplots(rows, columns, squeeze=False, width_ratios=widths, height_ratios=heights)
    return figure, [list(row) for row in grid]


def heat(
    axes: "Axes",
    values: npt.NDArray[np.floating[Any]],
    low: float | None = None,
    high: float | None = None,
    colours: str = SIGNED,
    upright: bool = False,
    faint: bool = False,
) -> "AxesImage":
    """A matrix as an image, one cell a value; signed colours are centred on zero unless limits are given.

    upright  row 0 at the bottom, as on a graph; faint: small values are drawn stronger, by their square root
    """
    from matplotlib.colors import PowerNorm

    if low is None and high is None and colours == SIGNED:
        high = float(np.abs(values).max()) or 1.0
        low = -high
    norm = PowerNorm(0.5, low, high) if faint else None
    image = axes.imshow(
        values,
        cmap=colours,
        norm=norm,
        vmin=None if faint else low,
        vmax=None if faint else high,
        aspect="auto",
        interpolation="nearest",
        origin="lower" if upright else "upper",
    )
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    return image


def drawable(text: str) -> str:
    """`text` as it can be drawn: what the font does not have is escaped, and a dollar sign begins no formula."""
    from matplotlib.font_manager import findfont, get_font

    font = get_font(findfont("DejaVu Sans"))

    def shown(c: str) -> str:
        if font.get_char_index(ord(c)):
            return c
        pictured = chr(ord(c) - 0x2400) if 0x2400 <= ord(c) < 0x2420 else c  # a picture of a control character
        return pictured.encode("unicode_escape").decode()

    return "".join(map(shown, text)).replace("$", r"\$")


def colour_bar(figure: "FigureBase", image: "AxesImage", axes: "Axes | Sequence[Axes]", label: str) -> None:
    """A thin colour bar at the right of `axes`."""
    bar = figure.colorbar(image, ax=axes, fraction=0.035, pad=0.02, aspect=28)
    bar.set_label(label)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)


def graded_colours(n: int) -> list[str]:
    """n colours from dark to light for things in order, none too light to be read on white."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(colormaps[ORDERED](0.08 + 0.74 * i / max(n - 1, 1))) for i in range(n)]


def plain_numbers(axis: "Axis") -> None:
    """10, 100, 1 000 on a logarithmic axis, instead of powers of ten."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda x, _: grouped(round(x)) if x >= 1 or x == 0 else f"{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def mark(axes: "Axes", x: float, text: str) -> None:
    """A vertical line at x with its name at the top, to its left."""
    axes.axvline(x, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    axes.annotate(
        text,
        (x, 1),
        xycoords=("data", "axes fraction"),
        xytext=(-5, -2),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=8.5,
        color=MUTED,
    )


def name_lines(axes: "Axes", x: float, ends: Sequence[float], names: Sequence[str], colours: Sequence[str]) -> None:
    """Names at the right end of lines, in their colours, instead of a legend. Where ends lie so close that names would
    overlap, these are moved apart, and a thin line leads from each end to its name.

    Call it when the axes' limits will not change any more.
    """
    from matplotlib.transforms import offset_copy

    figure: Any = axes.figure
    low, high = axes.get_ylim()
    finite = [min(max(float(y), low), high) if np.isfinite(y) else low for y in ends]
    every = -(-len(ends) // 18)  # with very many lines, only some are named
    order = sorted(range(len(finite)), key=lambda i: finite[i])[::every]
    places = spread([finite[i] for i in order], (high - low) * 0.052, low, high)
    moved = any(abs(finite[i] - y) > (high - low) * 0.004 for i, y in zip(order, places, strict=True))
    beside = offset_copy(axes.transData, figure, x=16 if moved else 6, units="points")
    for i, y in zip(order, places, strict=True):
        axes.annotate(
            names[i],
            (x, y),
            xycoords=beside,
            ha="left",
            va="center",
            fontsize=8.5,
            color=colours[i],
            annotation_clip=False,
        )
        if moved:
            axes.annotate(
                "",
                (x, finite[i]),
                xytext=(x, y),
                textcoords=offset_copy(beside, figure, x=-2, units="points"),
                annotation_clip=False,
                arrowprops={"arrowstyle": "-", "color": colours[i], "linewidth": 0.7, "shrinkA": 0, "shrinkB": 0},
            )


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places at least `gap` apart, within low and high if there is room, as near to the sorted ones wanted as can be:
    what is too close moves to both sides of its middle."""
    blocks: list[list[float]] = []  # of places that stand gap apart: the lowest one, and how many they are
    for y in wanted:
        blocks.append([y, 1])
        while len(blocks) > 1 and blocks[-2][0] + gap * blocks[-2][1] > blocks[-1][0]:
            (y0, n0), (y1, n1) = blocks[-2:]
            blocks[-2:] = [[(n0 * y0 + n1 * (y1 - gap * n0)) / (n0 + n1), n0 + n1]]
    places = [y + gap * n for y, count in blocks for n in range(int(count))]
    for n in range(len(places) - 1, -1, -1):  # down from the top edge, then up from the bottom one
        places[n] = min(places[n], high - gap * (len(places) - 1 - n))
    return [max(y, low + gap * n) for n, y in enumerate(places)]


def write_numbers(figure: "Figure", lang: str) -> None:
    """Let every axis of a figure write its numbers as a language writes them. Labels that were given as texts, such as
    tokens and ids, stay as they are."""
    from matplotlib.ticker import FixedFormatter, Formatter, FuncFormatter, NullFormatter

    class Localized(Formatter):
        def __init__(self, inner: Formatter) -> None:
            self.inner = inner

        def __call__(self, x: float, pos: int | None = None) -> str:
            return localize(self.inner(x, pos), lang)

        def set_axis(self, axis: Any) -> None:
            super().set_axis(axis)
            self.inner.set_axis(axis)

        def set_locs(self, locs: Any) -> None:
            self.inner.set_locs(locs)

        def get_offset(self) -> str:
            return localize(self.inner.get_offset(), lang)

    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        own = axis.get_major_formatter()
        texts = isinstance(own, FuncFormatter) and isinstance(
            own.func, partial
        )  # how set_ticks(places, labels) keeps them
        if not (texts or isinstance(own, FixedFormatter | NullFormatter)):
            axis.set_major_formatter(Localized(own))


__all__ = [
    "BLUE",
    "FAINT",
    "GREEN",
    "INK",
    "MUTED",
    "ORANGE",
    "ORDERED",
    "PURPLE",
    "SHARE",
    "SIGNED",
    "canvas",
    "colour_bar",
    "drawable",
    "gnomon_style",
    "graded_colours",
    "heat",
    "mark",
    "name_lines",
    "panels",
    "plain_numbers",
    "spread",
    "write_numbers",
]
