"""`gnomon order`: without position, attention cannot tell who bit whom."""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gnomon.cli.options import import_option, json_option, lang_option, seed_option
from gnomon.cli.output import print_json

if TYPE_CHECKING:
    from gnomon.plots.word_order import Order

FORMULAS = ("", "|A(b)-P A(a) P'|", "|f(b)-P f(a)|", "|mean f(b)-f(a)|")  # under the columns' names


@click.command("order")
@click.option("--position", "positions", multiple=True, help="Compare this encoding; repeatable.  [default: all six]")
@click.option("--layers", type=click.IntRange(min=1), default=2, show_default=True, help="Layers of the stack.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Draw the attention into this .png or .svg file.")
@seed_option
@lang_option
@import_option
@json_option
def command(positions: tuple[str, ...], layers: int, output: Path | None, seed: int, lang: str, as_json: bool) -> None:
    """Swap two words of a sentence and see what a Transformer notices, with and without position.

    The weights are random: what is shown is a property of the architecture, not of training.
    """
    from gnomon.plots.picture import picture_format
    from gnomon.plots.word_order import ENCODINGS, order

    if output is not None:
        picture_format(output)
    shown = order(lang, positions or ENCODINGS, seed, layers)
    if output is not None:
        on = [c.position for c in shown.comparisons if c.position != "none"]
        shown.picture("rope" if "rope" in on else (on or ["none"])[0]).save(output)
    if as_json:
        print_json({**shown.to_dict(), "file": output})
        return
    click.echo(_written(shown))
    if output is not None:
        click.echo(f"\n{output}")


def _written(shown: "Order") -> str:
    from gnomon.glossary import words
    from gnomon.plots.word_order import SIZES

    w, a = words("order", shown.lang), shown.a
    one, other = (a.words[i] for i in shown.swapped)
    n_one, n_other = (a.spans[i].stop - a.spans[i].start for i in shown.swapped)
    rows = [tuple(w(key) for key in ("position", "scores", "outputs", "pooled")), FORMULAS]
    rows += [(c.position, *(w.number(x, ".1e") for x in (c.scores, c.outputs, c.pooled))) for c in shown.comparisons]
    return "\n".join(
        [
            f"a  {a.text}",
            f"b  {shown.b.text}",
            "   " + w("same_tokens", count=len(a.ids), one=one, n_one=n_one, other=other, n_other=n_other),
            "",
            _wrapped(w("stack", layers=shown.layers, width=SIZES["d_model"], seed=shown.seed)),
            "",
            *(f"   {name:<12}{scores:>18}{outputs:>18}{pooled:>18}" for name, scores, outputs, pooled in rows),
            "",
            _wrapped(w("blind")),
            _wrapped(w("sees")),
            "",
            _wrapped(w("causal")),
            "",
            *(
                f"   {w('layers', count=n):<12}{w.number(difference, '.1e'):>18}"
                for n, difference in shown.causal.items()
            ),
            "",
            _wrapped(w("causal_why")),
        ]
    )


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 100)


__all__ = ["command"]
