"""`gnomon fill RUN "for i in [MASK](10):"`: what a trained model puts into the gaps of a text."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gnomon.cli.options import TakesModel, device_option, import_option, json_option, lang_option, threads_option
from gnomon.cli.output import print_json
from gnomon.glossary import numeral

if TYPE_CHECKING:
    from gnomon.tasks.masked import Guess


@click.command("fill", cls=TakesModel)
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("text")
@click.option("--top", type=click.IntRange(min=1), default=5, show_default=True, help="Guesses for each gap.")
@device_option
@threads_option
@import_option
@lang_option
@json_option
def command(run: Path, text: str, top: int, device: str, threads: int | None, lang: str, as_json: bool) -> None:
    """Guess what stands in each [MASK] of TEXT, with the model that `gnomon train --task masked` left in RUN.

    A gap is one token, and each is guessed by itself.
    """
    from gnomon.checkpoints import load
    from gnomon.device import set_threads
    from gnomon.tasks.masked import fill, fill_gaps

    set_threads(threads)
    model = load(run, device)
    gaps = fill(model, text, top)
    best = fill_gaps(text, [guesses[0] for guesses in gaps])
    if as_json:
        plain = [[guess._asdict() for guess in guesses] for guesses in gaps]
        print_json({"run": run, "text": text, "filled": best, "gaps": plain})
    else:
        click.echo("\n\n".join([best, *(_text(guesses, lang) for guesses in gaps)]))


def _text(guesses: "list[Guess]", lang: str) -> str:
    return "\n".join(f"  {numeral(guess.probability, '.2%', lang):>8}  {guess.token}" for guess in guesses)


__all__ = ["command"]
