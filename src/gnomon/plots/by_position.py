"""Picture of loss by position: one model or several on the same documents, as far out as each has positions."""

from collections.abc import Mapping, Sequence

from gnomon.errors import BadValue
from gnomon.glossary import grouped, words
from gnomon.lab.by_position import Stretch
from gnomon.plots.picture import Picture
from gnomon.plots.style import BLUE, GREEN, MUTED, ORANGE, PURPLE, gnomon_style, name_lines, panels

COLOURS = (BLUE, ORANGE, GREEN, PURPLE)


def losses_by_position(
    models: Mapping[str, Sequence[Stretch]], trained: int | None = None, lang: str = "en"
) -> Picture:
    """Nats per token over position, doubling to the right, with 95 % intervals; lower is better.

    models  name -> its stretches, up to four; trained: a line at the trained length
    """
    if not 1 <= len(models) <= len(COLOURS):
        raise BadValue(f"a picture holds 1 to {len(COLOURS)} models, got {len(models)}")
    w = words("plots", lang)
    title, note = w("by_position_title"), w("by_position_note")
    with gnomon_style():
        figure, [[axes]] = panels(title, note, (7.2, 4.2))
        longest = max(models.values(), key=len)
        ticks = range(len(longest))
        axes.set(xlabel=w("by_position_x"), ylabel=w("by_position_y"), xlim=(-0.5, len(longest) - 0.5 + 0.9))
        axes.set_xticks(ticks, [f"{grouped(s.start)}\u2013{grouped(s.stop)}" for s in longest], rotation=25, ha="right")
        axes.grid(axis="y")
        if trained is not None and any(s.start < trained <= s.stop for s in longest):
            at = next(n for n, s in enumerate(longest) if s.start < trained <= s.stop) + 0.5
            axes.axvline(at, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
            axes.annotate(
                w("trained_on", length=grouped(trained)),
                (at, 1),
                xycoords=("data", "axes fraction"),
                xytext=(4, -11),
                textcoords="offset points",
                fontsize=8.5,
                color=MUTED,
            )
        ends: list[tuple[float, str, str]] = []
        for (name, found), colour in zip(models.items(), COLOURS, strict=False):
            seen = [(n, s.nats) for n, s in enumerate(found) if s.nats is not None]
            x, y = [n for n, _ in seen], [m.value for _, m in seen]
            low, high = [m.low for _, m in seen], [m.high for _, m in seen]
            axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
            axes.plot(x, y, color=colour, marker="o", markersize=4)
            if len(x) == len(longest):
                ends.append((y[-1], name, colour))
            else:  # it ends early, beside the others: above them or below
                below = y[-1] < max(s.nats.value for s in (f[x[-1]] for f in models.values()) if s.nats is not None)
                axes.annotate(
                    name,
                    (x[-1], y[-1]),
                    xytext=(4, -9 if below else 9),
                    textcoords="offset points",
                    va="top" if below else "bottom",
                    fontsize=8.5,
                    color=colour,
                )
        if ends:
            name_lines(axes, len(longest) - 1, *zip(*ends, strict=True))
    facts = {name: [s.nats and s.nats.value for s in found] for name, found in models.items()}
    return Picture(figure, f"{title}. {note}", facts, lang)


__all__ = ["losses_by_position"]
