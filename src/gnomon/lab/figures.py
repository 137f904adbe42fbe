"""The result as pictures. matplotlib is imported when one is drawn."""

import io
import re
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from gnomon.glossary import grouped
from gnomon.lab.analysis import FLAT, Row
from gnomon.lab.report import Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, MUTED, FAINT, GROUND = "#1b2330", "#667085", "#e4e7ec", "#f1f3f7"
# After Okabe and Ito's palette for every kind of colour vision, without its yellow, which is too light for lines. Each
# colour has a marker of its own, and the encodings everybody knows keep theirs from report to report.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b8508f", "#2f9fd8", "#8c6d00", "#1b2330")
MARKERS = "osD^vPX"
KNOWN = {"alibi": 0, "rope": 1, "t5": 2, "sinusoidal": 3, "none": 4, "learned": 5}

WIDE, NARROW = (8.0, 4.9), (4.3, 4.9)  # inches: for a page on a desk, and on a phone

_SETTINGS: Any = {
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
    "font.size": 9.5, "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": MUTED, "xtick.color": MUTED,
    "ytick.color": MUTED, "xtick.labelcolor": INK, "ytick.labelcolor": INK, "axes.spines.top": False,
    "axes.spines.right": False, "axes.linewidth": 0.8, "axes.axisbelow": True, "grid.color": FAINT,
    "grid.linewidth": 0.8, "lines.solid_capstyle": "round", "figure.facecolor": "white", "savefig.facecolor": "white",
    "svg.fonttype": "none", "svg.hashsalt": "gnomon",
}  # fmt: skip


@dataclass(frozen=True)
class Line:
    """One curve of a picture."""

    name: str
    x: list[float]
    y: list[float]
    colour: str
    marker: str


def extrapolation(report: Report, size: tuple[float, float] = WIDE) -> "Figure":
    """Bits per byte of the same targets by the tokens given, beside cropping and the trigram."""
    lengths = report.settings.lengths
    lines = [
        _line(report, row, [(n, b.value) for n, b in zip(lengths, row.bits, strict=True) if b is not None])
        for row in report.rows
    ]
    with _drawing():
        figure, axes = _canvas(
            report, size, lengths[0] / (2.2 if size[0] > NARROW[0] else 4.2),
            f"Trained on {lengths[0]} tokens, given up to {grouped(lengths[-1])}",
            f"The same {grouped(report.targets['tokens'])} held-out tokens at every length. "
            f"Dotted: cropped to the last {lengths[0]} tokens.",
        )  # fmt: skip
        for line in lines:
            if line.x[-1] > lengths[0]:
                axes.plot(
                    lengths[1:], [line.y[0]] * (len(lengths) - 1), ":", color=line.colour, marker=line.marker,
                    markersize=3, lw=1.1, alpha=0.45, zorder=2,
                )  # fmt: skip
            axes.plot(line.x, line.y, color=line.colour, marker=line.marker, markersize=5.5, lw=2, zorder=3)
        seen = [y for line in lines for y in line.y]
        _finish(axes, lines, seen, "Tokens given in front of the targets", report.trigram.value)
        axes.set_xticks(lengths, [f"{grouped(n)}\n{n / lengths[0]:g}×" for n in lengths])
        return figure


def by_position(report: Report, size: tuple[float, float] = WIDE) -> "Figure":
    """Bits per byte by position within one long window."""
    L, longest = report.settings.train_length, report.settings.lengths[-1]
    lines = [_line(report, row, _curve(report, row)) for row in report.rows]
    with _drawing():
        figure, axes = _canvas(
            report, size, 2.2, f"Loss by position, trained on {L} tokens",
            f"Windows of {grouped(longest)} held-out tokens read in one piece, against what a trigram pays for the "
            "same text. Grey: what training reached.",
        )  # fmt: skip
        for line in lines:
            axes.plot(line.x, line.y, color=line.colour, marker=line.marker, markersize=3.2, lw=1.7, zorder=3)
        _finish(axes, lines, [y for line in lines for y in line.y], "Position in the window", 1.0)
        axes.set_ylabel("bits against the byte trigram's (lower is better)")
        axes.yaxis.set_major_formatter(lambda y, _: f"{100 * (y - 1):+.0f} %".replace("-", "−").replace("+0 ", "0 "))
        ticks = [2**k for k in range(2, longest.bit_length())]
        ticks = ticks if size[0] > NARROW[0] else ticks[1::2]
        axes.set_xticks(ticks, [grouped(n) for n in ticks])
        return figure


def look(report: Report, row: Row) -> tuple[str, str]:
    """Colour and marker of an encoding: the well-known keep theirs, others share what is left."""
    others = [r.label for r in report.rows if r.label not in KNOWN]
    taken = {KNOWN[r.label] for r in report.rows if r.label in KNOWN}
    free = [i for i in range(len(COLOURS)) if i not in taken] or list(range(len(COLOURS)))
    i = KNOWN[row.label] if row.label in KNOWN else free[others.index(row.label) % len(free)]
    return COLOURS[i], MARKERS[i]


# ------------------------------------------------------------------ parts of a picture


def _line(report: Report, row: Row, points: Sequence[tuple[float, float]]) -> Line:
    return Line(row.label, [x for x, _ in points], [y for _, y in points], *look(report, row))


def _curve(report: Report, row: Row) -> list[tuple[float, float]]:
    """Buckets of positions, counted from 1, as points at their geometric middle; the first few see next to nothing."""
    buckets = zip(pairwise(report.edges), row.curve, strict=True)
    return [(((a + 1) * b) ** 0.5, c) for (a, b), c in buckets if c is not None and b > 2]


@contextmanager
def _drawing() -> Iterator[None]:
    from matplotlib import rc_context

    with rc_context(_SETTINGS):
        yield


def _canvas(report: Report, size: tuple[float, float], left: float, title: str, subtitle: str) -> "tuple[Figure, Axes]":
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
    names = 0.098 * max(len(row.label) for row in report.rows) + 0.2
    axes = figure.add_axes((0.76 / width, 0.72 / height, 1 - (0.76 + names) / width, 1 - (0.72 + top) / height))
    axes.set_xscale("log", base=2)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    L, longest = report.settings.train_length, report.settings.lengths[-1]
    axes.set_xlim(left, longest * 1.06)
    axes.axvspan(left, L, color=GROUND, lw=0, zorder=0)
    axes.grid(axis="y")
    axes.set_ylabel("bits per byte (lower is better)")
    return figure, axes


def _finish(axes: "Axes", lines: Sequence[Line], values: Sequence[float], x_label: str, trigram: float) -> None:
    """Limits, the trigram, and names beside the ends of lines."""
    low, high = min(values), max(*values, trigram)
    room = max(high - low, 4 * FLAT * low)  # so that small differences look small
    axes.set_ylim(low - 0.07 * room, low + 1.07 * room)
    axes.set_xlabel(x_label)
    axes.axhline(trigram, color=MUTED, lw=1.2, ls=(0, (5, 3)), zorder=1)
    axes.annotate(
        "byte trigram", (0, trigram), xycoords=("axes fraction", "data"), xytext=(4, 3),
        textcoords="offset points", va="bottom", fontsize=8.5, color=MUTED,
    )  # fmt: skip
    end = max(line.x[-1] for line in lines)
    late = sorted((line for line in lines if line.x[-1] > 0.6 * end), key=lambda line: line.y[-1])
    for line, y in zip(late, _apart([line.y[-1] for line in late], axes.get_ylim()), strict=True):
        _write(axes, line, (end, y), (9, 0), "left")
    for line in lines:
        if line not in late:
            _write(axes, line, (line.x[-1], line.y[-1]), (-8, 0), "right")


def _write(axes: "Axes", line: Line, at: tuple[float, float], offset: tuple[int, int], ha: str) -> None:
    axes.annotate(
        line.name, at, xytext=offset, textcoords="offset points", ha=ha, va="center", fontsize=9.5, color=line.colour,
        fontweight="bold", annotation_clip=False,
    )  # fmt: skip


def _apart(ends: Sequence[float], limits: tuple[float, float]) -> list[float]:
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
    return _rendered(figure, "png", {})


def svg(figure: "Figure", prefix: str) -> str:
    """The picture as an SVG element to stand in a page; `prefix` keeps its ids apart from those of other pictures."""
    text = _rendered(figure, "svg", {"Date": None}).decode()
    text = text[text.index("<svg") :]
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}", text)
    return re.sub(r' (width|height)="[\d.]+pt"', "", text, count=2)  # the page says how wide


def _rendered(figure: "Figure", kind: str, metadata: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    with _drawing():
        figure.savefig(out, format=kind, dpi=160, metadata=metadata)
    return out.getvalue()


__all__ = ["NARROW", "WIDE", "by_position", "extrapolation", "look", "png", "svg"]
