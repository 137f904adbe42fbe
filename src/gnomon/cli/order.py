"""`gnomon order`: without position, attention cannot tell who bit whom."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gnomon.cli.options import import_option, json_option, lang_option, seed_option
from gnomon.cli.output import columns, print_json, wrap
from gnomon.errors import BadValue

if TYPE_CHECKING:
    from gnomon.glossary import Words
    from gnomon.plots.word_order import Order

FORMULAS = ("", "|A(b)-P A(a) P'|", "|f(b)-P f(a)|", "|mean f(b)-f(a)|")  # under the columns' names
WIDE, NARROW = 18, 14  # of a column; narrow ones have no room for formulas


@click.command("order")
@click.option("--position", "positions", multiple=True, help="Compare this encoding; repeatable.  [default: all six]")
@click.option(
    "--sentence",
    "sentences",
    multiple=True,
    help="A sentence of your own; give two, of the same words in another order.",
)
@click.option("--layers", type=click.IntRange(min=1), default=2, show_default=True, help="Layers of the stack.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Draw the attention into this .png or .svg file.")
@seed_option
@lang_option
@import_option
@json_option
def command(
    positions: tuple[str, ...],
    sentences: tuple[str, ...],
    layers: int,
    output: Path | None,
    seed: int,
    lang: str,
    as_json: bool,
) -> None:
    """Swap two words of a sentence and see what a Transformer notices, with and without position.

    The weights are random: what is shown is a property of the architecture, not of training. Sentences of your own:
    --sentence "Ann saw Bob" --sentence "Bob saw Ann".
    """
    from gnomon.plots.picture import picture_format
    from gnomon.plots.word_order import ENCODINGS, order

    if output is not None:
        picture_format(output)
    if len(sentences) not in (0, 2):
        raise BadValue(f"give --sentence twice, the same words in two orders; got {len(sentences)}")
    pair = (sentences[0], sentences[1]) if sentences else None
    shown = order(lang, positions or ENCODINGS, seed, layers, pair)
    if output is not None:
        on = [c.position for c in shown.comparisons if c.position != "none"]
        shown.picture("rope" if "rope" in on else (on or ["none"])[0]).save(output)
    if as_json:
        print_json({**shown.to_dict(), "file": output})
        return
    click.echo(_text(shown))
    if output is not None:
        click.echo(f"\n{output}")


def _text(shown: "Order") -> str:
    from gnomon.glossary import words
    from gnomon.plots.word_order import SIZES

    w, a = words("order", shown.lang), shown.a
    cell = WIDE if columns() >= 3 + 12 + 3 * WIDE else NARROW
    rows = [tuple(w(key) for key in ("position", "scores", "outputs", "pooled"))] + [FORMULAS] * (cell == WIDE)
    rows += [(c.position, *(w.number(x, ".1e") for x in (c.scores, c.outputs, c.pooled))) for c in shown.comparisons]
    return "\n".join(
        [
            wrap(a.text, "a  "),
            wrap(shown.b.text, "b  "),
            wrap(_same_tokens(shown, w), "   "),
            "",
            wrap(w("stack", layers=shown.layers, width=SIZES["d_model"], seed=shown.seed)),
            "",
            *(
                f"   {name:<12}{scores:>{cell}}{outputs:>{cell}}{pooled:>{cell}}"
                for name, scores, outputs, pooled in rows
            ),
            "",
            wrap(w("blind")),
            *([wrap(w("sees"))] if any(c.position != "none" for c in shown.comparisons) else []),
            "",
            wrap(w("causal")),
            "",
            *(
                f"   {w('layers', count=n):<12}{w.number(difference, '.1e'):>{cell}}"
                for n, difference in shown.causal.items()
            ),
            "",
            wrap(w("causal_why")),
        ]
    )


def _same_tokens(shown: "Order", w: "Words") -> str:
    """Which spans change places, and how many tokens each has."""
    a = shown.a
    if shown.swapped is None:
        return w("reordered", count=len(a.ids))
    one, other = (" ".join(a.words[run]) for run in shown.swapped)
    n_one, n_other = (a.spans[run.stop - 1].stop - a.spans[run.start].start for run in shown.swapped)
    return w("same_tokens", count=len(a.ids), one=one, n_one=n_one, other=other, n_other=n_other)


__all__ = ["command"]
