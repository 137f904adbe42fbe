"""The result as pictures. matplotlib is imported when one is drawn."""

import io
import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from gnomon.glossary import Words, numeral, words
from gnomon.lab.analysis import FLAT, EncodingResult
from gnomon.lab.report import LabReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, MUTED, FAINT, GROUND = "#1b2330", "#667085", "#e4e7ec", "#f1f3f7"
# After Okabe and Ito's palette for every kind of colour vision, without its yellow, which is too light for lines. Each
# colour has a marker of its own, and the encodings everybody knows keep theirs from report to report.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b8508f", "#2f9fd8", "#8c6d00", "#1b2330")
MARKERS = "osD^vPX"
#: colour -> the variable of page.css that holds it; INK is a curve's colour too
_VARIABLES = {
    **{colour: f"var(--curve-{n})" for n, colour in enumerate(COLOURS)},
    INK: "var(--ink)",
    MUTED: "var(--axis)",
    FAINT: "var(--line)",
    GROUND: "var(--ground)",
    "#ffffff": "var(--paper)",
}
KNOWN = {"alibi": 0, "rope": 1, "t5": 2, "sinusoidal": 3, "none": 4, "learned": 5}

SIZE = 9.5  # points, of names
AROUND, REACHES = (
    24,
    (8.0, 12.0, 18.0, 26.0, 36.0, 48.0),
)  # directions and distances, in points, at which a name may stand
WIDE, NARROW = (8.0, 4.9), (4.3, 4.9)  # inches: for a page on a desk, and on a phone

_SETTINGS: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
    "font.size": 9.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.8,
    "lines.solid_capstyle": "round",
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.fonttype": "none",
    "svg.hashsalt": "gnomon",
}


@dataclass(frozen=True)
class PlotLine:
    """One curve of a picture."""

    name: str
    x: list[float]
    y: list[float]
    colour: str
    marker: str


def extrapolation(report: LabReport, size: tuple[float, float] = WIDE, lang: str = "en") -> "Figure":
    """Bits per byte of the same targets by the tokens given, beside cropping and the trigram."""
    w, lengths = words("lab", lang), report.settings.lengths
    lines = [
        _line(report, row, [(n, b.value) for n, b in zip(lengths, row.bits, strict=True) if b is not None], size[0])
        for row in report.rows
    ]
    with _plot_settings():
        figure, axes = _canvas(
            report,
            size,
            lengths[0] / (2.2 if size[0] > NARROW[0] else 4.2),
            w("curves_title", trained=lengths[0], longest=lengths[-1]),
            w("curves_note", tokens=report.targets["tokens"], trained=lengths[0]),
        )
        for line in lines:
            if line.x[-1] > lengths[0]:
                axes.plot(
                    lengths,
                    [line.y[0]] * len(lengths),
                    color=line.colour,
                    lw=1.5,
                    ls=(0, (1, 1.6)),
                    alpha=0.75,
                    dash_capstyle="round",
                    zorder=2,
                )
            axes.plot(line.x, line.y, color=line.colour, marker=line.marker, markersize=5.5, lw=2, zorder=3)
        axes.set_ylabel(w("curves_y"))
        named = (
            lengths if size[0] > NARROW[0] else lengths[::-1][::2]
        )  # on a phone every second, the longest among them
        labels = [f"{w.number(n)}\n{w.number(n / lengths[0], 'g')}×" if n in named else "" for n in lengths]
        axes.set_xticks(lengths, labels)
        _finish(axes, lines, w("curves_x"), report.trigram.value, w)
        ticks = [y for y in axes.get_yticks() if axes.get_ylim()[0] <= y <= axes.get_ylim()[1]]
        decimals = max(len(f"{y:.6g}".partition(".")[2]) for y in ticks)
        axes.set_yticks(ticks, [w.number(y, f".{decimals}f") for y in ticks])
        return figure


def by_position(report: LabReport, size: tuple[float, float] = WIDE, lang: str = "en") -> "Figure":
    """Bits per byte by position within one long window."""
    w, L, longest = words("lab", lang), report.settings.train_length, report.settings.lengths[-1]
    lines = [_line(report, row, _curve(report, row), size[0]) for row in report.rows]
    with _plot_settings():
        figure, axes = _canvas(report, size, 2.2, w("positions_title", trained=L), w("positions_note", longest=longest))
        for line in lines:
            axes.plot(line.x, line.y, color=line.colour, marker=line.marker, markersize=3.2, lw=1.7, zorder=3)
        axes.set_ylabel(w("positions_y"))
        axes.yaxis.set_major_formatter(lambda y, _: numeral(y - 1, "+.0%").replace("-", "−").replace("+0 ", "0 "))
        ticks = [2**k for k in range(2, longest.bit_length())]
        ticks = ticks if size[0] > NARROW[0] else ticks[1::2]
        axes.set_xticks(ticks, [w.number(n) for n in ticks])
        _finish(axes, lines, w("positions_x"), 1.0, w)
        return figure


def colour_of(report: LabReport, row: EncodingResult) -> str:
    """The colour of an encoding for a page, whose style has one for a light ground and one for a dark one."""
    return _VARIABLES[style_of(report, row)[0]]


def style_of(report: LabReport, row: EncodingResult) -> tuple[str, str]:
    """Colour and marker of an encoding: the well-known keep theirs, others share what is left."""
    others = [r.label for r in report.rows if r.label not in KNOWN]
    taken = {KNOWN[r.label] for r in report.rows if r.label in KNOWN}
    free = [i for i in range(len(COLOURS)) if i not in taken] or list(range(len(COLOURS)))
    i = KNOWN[row.label] if row.label in KNOWN else free[others.index(row.label) % len(free)]
    return COLOURS[i], MARKERS[i]


# ------------------------------------------------------------------ parts of a picture


def _line(report: LabReport, row: EncodingResult, points: Sequence[tuple[float, float]], width: float) -> PlotLine:
    return PlotLine(_short(row.label, width), [x for x, _ in points], [y for _, y in points], *style_of(report, row))


def _curve(report: LabReport, row: EncodingResult) -> list[tuple[float, float]]:
    """Buckets of positions, counted from 1, as points at their geometric middle; the first few see next to nothing."""
    buckets = zip(pairwise(report.edges), row.curve, strict=True)
    return [(((a + 1) * b) ** 0.5, c) for (a, b), c in buckets if c is not None and b > 2]


@contextmanager
def _plot_settings() -> Iterator[None]:
    from matplotlib import rc_context

    with rc_context(_SETTINGS):
        yield


def _canvas(
    report: LabReport, size: tuple[float, float], left: float, title: str, subtitle: str
) -> "tuple[Figure, Axes]":
    """A header, and axes that double along x, with what training reached in grey and room for names at the right."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter, NullLocator

    width, height = size
    figure = Figure(figsize=size)
    head = textwrap.wrap(title, int(width * 7.4))
    note = textwrap.wrap(subtitle, int(width * 13))
    figure.text(0.02, 1 - 0.1 / height, "\n".join(head), va="top", fontsize=12.5, fontweight="bold")
    below = 0.14 + 0.21 * len(head)
    figure.text(0.02, 1 - below / height, "\n".join(note), va="top", color=MUTED, linespacing=1.35)
    top = below + 0.2 * len(note) + 0.16
    names = 0.098 * max(len(_short(row.label, width)) for row in report.rows) + 0.2
    axes = figure.add_axes((0.76 / width, 0.72 / height, 1 - (0.76 + names) / width, 1 - (0.72 + top) / height))
    axes.set_xscale("log", base=2)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    L, longest = report.settings.train_length, report.settings.lengths[-1]
    axes.set_xlim(left, longest * 1.06)
    axes.axvspan(left, L, color=GROUND, lw=0, zorder=0)
    axes.grid(axis="y")
    return figure, axes


def _finish(axes: "Axes", lines: Sequence[PlotLine], x_label: str, trigram: float, w: Words) -> None:
    """Limits, the trigram, and a name beside the end of each line."""
    values = [y for line in lines for y in line.y]
    low, high = min(values), max(*values, trigram)
    room = max(high - low, 4 * FLAT * low)  # so that small differences look small
    axes.set_ylim(low - 0.07 * room, low + 1.07 * room)
    axes.set_xlabel(x_label)
    axes.axhline(trigram, color=MUTED, lw=1.2, ls=(0, (5, 3)), zorder=1)
    end = max(line.x[-1] for line in lines)
    late = sorted((line for line in lines if line.x[-1] > 0.6 * end), key=lambda line: line.y[-1])
    for line, y in zip(late, _spread([line.y[-1] for line in late], axes.get_ylim()), strict=True):
        _write(axes, line.name, line.colour, (end, y), ((9.0, 0.0), "left", "center"))
    drawn = [point for line in lines for point in _dense(line)]
    for line in lines:
        if line not in late:
            spots = [((line.x[-1], line.y[-1]), place) for place in _around()]
            drawn.append((line.x[-1], line.y[-1]))
            _write(axes, line.name, line.colour, *_free(axes, line.name, spots, [*drawn, *_level(axes, trigram)]))
    places = [(axes.get_xlim()[0] * 1.12**n, trigram) for n in range(60)]
    spots = [(at, ((4.0, dy), "left", va)) for at in places for dy, va in ((3.0, "bottom"), (-3.0, "top"))]
    figure: Any = axes.figure
    name = w("trigram" if figure.get_figwidth() > NARROW[0] else "trigram_short")
    at, place = _free(axes, name, spots, drawn, letter=5.4)
    _write(axes, name, MUTED, at, place, fontsize=8.5, fontweight="normal")


Place = tuple[tuple[float, float], str, str]  # offset from a point, in points, and how the text is aligned
Spot = tuple[tuple[float, float], Place]


def _short(name: str, width: float) -> str:
    """A name that leaves room for the curves of a picture `width` inches wide; what is left out is in its middle."""
    most = int(3.6 * width)
    tail = (most - 1) // 2
    return name if len(name) <= most else f"{name[: most - 1 - tail]}…{name[-tail:]}"


def _write(axes: "Axes", name: str, colour: str, at: tuple[float, float], place: Place, **style: Any) -> None:
    offset, ha, va = place
    looks: Any = {"fontsize": SIZE, "fontweight": "bold", **style}
    axes.annotate(
        name,
        at,
        xytext=offset,
        textcoords="offset points",
        ha=ha,
        va=va,
        color=colour,
        annotation_clip=False,
        **looks,
    )


def _around() -> Iterator[Place]:
    """Where a name may stand around the end of a line, the nearest places first, and of these the one at the right."""
    for reach in REACHES:
        for n in range(AROUND):
            turn = 2 * math.pi * n / AROUND
            dx, dy = reach * math.cos(turn), reach * math.sin(turn)
            ha = "left" if dx > 0.3 * reach else "right" if dx < -0.3 * reach else "center"
            va = "bottom" if dy > 0.3 * reach else "top" if dy < -0.3 * reach else "center"
            yield (dx, dy), ha, va


def _free(
    axes: "Axes", name: str, spots: Sequence[Spot], drawn: Sequence[tuple[float, float]], letter: float = 6.5
) -> Spot:
    """The first spot at which a name lies within the axes and on none of the points drawn; else on the fewest.

    letter: points that a letter takes in the mean
    """
    dots = axes.figure.dpi / 72
    width, height, clear = letter * len(name) * dots, 1.2 * SIZE * dots, 2.5 * dots
    points = axes.transData.transform(drawn)
    frame = axes.get_window_extent()

    def hidden(spot: Spot) -> float:
        at, ((dx, dy), ha, va) = spot
        x, y = axes.transData.transform(at)
        left = x + dx * dots - {"left": 0.0, "center": 0.5, "right": 1.0}[ha] * width
        low = y + dy * dots - {"bottom": 0.0, "center": 0.5, "top": 1.0}[va] * height
        under = (points > (left - clear, low - clear)) & (points < (left + width + clear, low + height + clear))
        fits = frame.x0 <= left <= left + width <= frame.x1 and frame.y0 <= low <= low + height <= frame.y1
        return float(under.all(1).sum()) + (0 if fits else 1000)

    return min(spots, key=hidden)


def _level(axes: "Axes", y: float) -> list[tuple[float, float]]:
    """Points along a level line, from edge to edge."""
    low, high = axes.get_xlim()
    return [(low * (high / low) ** (n / 100), y) for n in range(101)]


def _dense(line: PlotLine) -> list[tuple[float, float]]:
    """Points so close along a line that no name can stand between two of them unseen."""
    steps = 40
    found = [(line.x[0], line.y[0])]
    for (x0, y0), (x1, y1) in pairwise(zip(line.x, line.y, strict=True)):
        found += [(x0 * (x1 / x0) ** (n / steps), y0 + (y1 - y0) * n / steps) for n in range(1, steps + 1)]
    return found


def _spread(ends: Sequence[float], limits: tuple[float, float]) -> list[float]:
    """Heights for names at the sorted ends of lines, moved apart where they would overlap."""
    gap = 0.055 * (limits[1] - limits[0])
    places: list[float] = []
    for y in ends:
        places.append(max(y, places[-1] + gap) if places else max(y, limits[0]))
    for i in range(len(places) - 1, -1, -1):  # and down again from the top edge
        places[i] = min(places[i], limits[1] - gap * (len(places) - 1 - i))
    return places


# ------------------------------------------------------------------ files


def png(figure: "Figure") -> bytes:
    """The picture as a PNG file."""
    return _render(figure, "png", {})


def svg(figure: "Figure", prefix: str) -> str:
    """The picture as an SVG element to stand in a page; `prefix` keeps its ids apart from those of other pictures.

    Its colours are the page's variables, so that they follow a dark ground.
    """
    text = _render(figure, "svg", {"Date": None}).decode()
    text = text[text.index("<svg") :]
    text = re.sub("|".join(_VARIABLES), lambda found: _VARIABLES[found[0]], text)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}", text)
    return re.sub(r' (width|height)="[\d.]+pt"', "", text, count=2)  # the page says how wide


def standalone_svg(figure: "Figure") -> bytes:
    """The picture as an SVG file, with its colours."""
    return _render(figure, "svg", {"Date": None})


def _render(figure: "Figure", kind: str, metadata: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    with _plot_settings():
        figure.savefig(out, format=kind, dpi=160, metadata=metadata)
    return out.getvalue()


__all__ = ["NARROW", "WIDE", "by_position", "colour_of", "extrapolation", "png", "standalone_svg", "style_of", "svg"]
