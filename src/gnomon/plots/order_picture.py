"""The picture of the word-order demonstration: who looks at whom in both sentences, and what differs."""

from typing import TYPE_CHECKING

from gnomon.errors import BadValue
from gnomon.glossary import words
from gnomon.plots.picture import Picture, draw
from gnomon.plots.style import MUTED, SHARE, colour_bar, drawable, gnomon_style, heat, panels
from gnomon.plots.word_order import Order, Sentence

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@draw.register(Order)
def draw_order(seen: Order, position: str = "rope") -> Picture:
    """Layer 1's attention over both sentences, and their difference once the words are back: a row without position
    and, unless it is "none", a row with `position`, which must be among those compared."""
    w = words("order", seen.lang)
    found = {c.position: c for c in seen.comparisons}
    if position not in found:
        raise BadValue(f"{position!r} was not compared; compared were {', '.join(found)}")
    compared = list(dict.fromkeys(("none", position)))
    pairs = [found[name].attention for name in compared]
    names = [w("off") if name == "none" else w("on", name=name) for name in compared]
    apart = [(b - a[seen.back][:, seen.back]).abs() for a, b in pairs]
    top, furthest = max(float(x.max()) for pair in pairs for x in pair), max(float(x.max()) for x in apart)
    furthest = furthest if furthest > 1e-9 else top  # rounding alone is drawn as nothing
    title, note = w("title" if seen.a.words == w("sentence").split() else "title_own"), w("note")
    with gnomon_style():
        figure, grid = panels(title, note, (10.6, 0.6 + 3.5 * len(pairs)), rows=len(pairs), columns=3)
        for row, (a, b), difference, name in zip(grid, pairs, apart, names, strict=True):
            for axes, weights, shown in zip(row, (a, b), (seen.a, seen.b), strict=False):
                image = heat(axes, weights.numpy(), 0, top, SHARE)
                axes.set_title(drawable(shown.text))
                _name_words(axes, shown)
            colour_bar(figure, image, row[1], "")
            image = heat(row[2], difference.numpy(), 0, furthest, "Oranges")
            row[2].set_title(f"{w('difference')}\n{w('largest', value=float(difference.max()))}")
            _name_words(row[2], seen.b)
            colour_bar(figure, image, row[2], "")
            row[0].set_ylabel(name, fontsize=11, fontweight="bold", labelpad=8)
    return Picture(figure, f"{title} {note}", seen.to_dict(), seen.lang)


def _name_words(axes: "Axes", shown: Sentence) -> None:
    """Words instead of tokens along both axes, with thin lines around the spans of those long enough to matter."""
    middles = [(span.start + span.stop - 1) / 2 for span in shown.spans]
    axes.set_xticks(middles, [drawable(word) for word in shown.words], rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(middles, [drawable(word) for word in shown.words])
    axes.set_aspect("equal")
    for span in shown.spans:
        for edge in (span.start - 0.5, span.stop - 0.5):
            axes.axhline(edge, color=MUTED, linewidth=0.3)
            axes.axvline(edge, color=MUTED, linewidth=0.3)


__all__ = ["draw_order"]
