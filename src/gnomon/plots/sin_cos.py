"""Sine and cosine alone: curves over positions, and clock hands, for encodings whose pairs of channels turn.

Pair i of position p holds cos(p theta_i) and sin(p theta_i): the point of a hand that turns by theta_i a token.
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from gnomon.errors import BadValue, check_arguments
from gnomon.glossary import words
from gnomon.plots.picture import Picture, check_drawable
from gnomon.plots.resolve import Position, build_rotation
from gnomon.plots.style import BLUE, FAINT, MUTED, ORANGE, gnomon_style, graded_colours, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = 5  # pairs of channels
AT = (0, 1, 2, 3, 5, 10, 50)  # positions whose hands are drawn


@check_arguments
def curves(
    position: Position = "sinusoidal", length: int = 60, d_model: int = 32, d_head: int = 32, lang: str = "en"
) -> Picture:
    """Sine and cosine of some pairs of channels, the fastest and the slowest among them, at positions 0..length-1.

    facts: "pairs" (the first is 0), "wavelengths" in tokens, "cosines" and "sines" (pairs, length)
    """
    w = words("turning", lang)
    if length < 2:
        raise BadValue(f"a curve needs at least two positions, got length={length}")
    check_drawable(2 * SHOWN * length, f"sines at {length} positions")
    pairs, theta, name = _pairs(position, d_model, d_head, length)
    at = np.arange(length)
    angles = np.outer(theta, at)
    title, note = w("curves_title", name=name), w("curves_note")
    with gnomon_style():
        figure, grid = panels(title, note, (8.4, 0.9 + 1.25 * len(pairs)), rows=len(pairs))
        for n, [axes] in enumerate(grid):
            for values, colour in ((np.sin(angles[n]), BLUE), (np.cos(angles[n]), ORANGE)):
                axes.plot(at, values, color=colour, linewidth=1.3, marker="o" if length <= 100 else "", markersize=2.5)
            axes.set(ylim=(-1.15, 1.15), xlim=(-0.5, length - 0.5), yticks=(-1, 0, 1))
            axes.set_title(w("pair_turn", number=pairs[n] + 1, wavelength=_turn(theta[n])))
            axes.axhline(0, color=FAINT, linewidth=0.8, zorder=0)
            if n < len(pairs) - 1:
                axes.set_xticklabels([])
        for key, colour, x in (("sine", BLUE, 0.88), ("cosine", ORANGE, 1.0)):
            grid[0][0].text(x, 1.08, w(key), transform=grid[0][0].transAxes, ha="right", color=colour)
        grid[-1][0].set_xlabel(w("position"))
    facts = {
        "pairs": pairs,
        "wavelengths": [2 * math.pi / t for t in theta],
        "cosines": np.cos(angles).tolist(),
        "sines": np.sin(angles).tolist(),
    }
    return Picture(figure, f"{title}. {note}", facts, lang)


@check_arguments
def clock(position: Position = "sinusoidal", d_model: int = 32, d_head: int = 32, lang: str = "en") -> Picture:
    """A dial for each of some pairs of channels (rows) at some positions (columns), with its hand at (cos, sin).

    facts: "pairs", "positions", and "angles" (pairs, positions) in radians
    """
    w = words("turning", lang)
    pairs, theta, name = _pairs(position, d_model, d_head, max(AT))
    angles = np.outer(theta, AT)
    title, note = w("clock_title", name=name), w("clock_note")
    with gnomon_style():
        figure, grid = panels(title, note, (1.25 * len(AT) + 1.6, 1.1 + 1.3 * len(pairs)), len(pairs), len(AT))
        for n, (row, colour) in enumerate(zip(grid, graded_colours(len(pairs)), strict=True)):
            for m, axes in enumerate(row):
                _dial(axes, float(angles[n, m]), colour)
                if n == 0:
                    axes.set_title(w("at_position", number=AT[m]), loc="center")
            row[0].set_ylabel(
                w("pair_line", number=pairs[n] + 1, wavelength=_turn(theta[n])), rotation=0, ha="right", va="center"
            )
    facts = {"pairs": pairs, "positions": list(AT), "angles": angles.tolist()}
    return Picture(figure, f"{title}. {note}", facts, lang)


def _pairs(position: Position, d_model: int, d_head: int, length: int) -> tuple[list[int], list[float], str]:
    """Some of the pairs that turn, their frequencies in radians a token, and the encoding's name: the fastest, the
    slowest, and between them those whose turning can be seen within `length` positions, evenly spread."""
    check_drawable(20 * max(d_head, d_model), f"the frequencies of {max(d_head, d_model)} channels")
    encoding = build_rotation(position, d_head=d_head, d_model=d_model)
    turn = [(n, theta) for n, theta in enumerate(encoding.frequencies()) if theta]
    found = sorted(turn, key=lambda pair: -pair[1])  # where axes share the channels, each begins anew
    seen = max(1, sum(theta * length > math.pi / 4 for _, theta in found))
    some = sorted({*(round(x) for x in np.linspace(0, seen - 1, min(SHOWN - 1, seen))), len(found) - 1})
    return [found[n][0] for n in some], [found[n][1] for n in some], encoding.name


def _turn(theta: float) -> float:
    """Tokens that a whole turn takes, with three digits that count."""
    turn = 2 * math.pi / theta
    return round(turn, max(0, 2 - math.floor(math.log10(turn))))


def _dial(axes: "Axes", angle: float, colour: str) -> None:
    from matplotlib.patches import Arc, Circle

    axes.add_patch(Circle((0, 0), 1, fill=False, edgecolor=MUTED, linewidth=0.8))
    axes.plot([0, 1], [0, 0], color=FAINT, linewidth=1.2, zorder=0)  # where every hand stands at position 0
    x, y = math.cos(angle), math.sin(angle)
    axes.plot([0, x], [0, y], color=colour, linewidth=2)
    axes.plot([x], [y], "o", color=colour, markersize=4.5)
    if angle < 2 * math.pi:
        axes.add_patch(Arc((0, 0), 0.7, 0.7, theta1=0, theta2=math.degrees(angle), color=colour, linewidth=0.9))
    axes.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


__all__ = ["AT", "clock", "curves"]
