"""`gnomon advise MODEL --to N`: whether and how to let a RoPE model read N tokens."""

from pathlib import Path

import click

from gnomon.cli.lab_extension import show, teller
from gnomon.cli.options import (
    TOKENS,
    TakesModel,
    reading_options,
)
from gnomon.glossary import words


@click.command("advise", cls=TakesModel)
@click.argument("model")
@click.option("--to", type=TOKENS, required=True, help="Tokens that it shall read.")
@click.option("--trained", type=TOKENS, help="Length it was trained to.  [default: what its files say]")
@click.option("--text", "sources", multiple=True, default=("stdlib",), show_default=True, help="Text to measure on.")
@click.option("--documents", type=click.IntRange(2), default=2, show_default=True, help="Texts that are read.")
@click.option("--minutes", type=float, default=10.0, show_default=True, help="To spend; what does not fit is listed.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Keep the evidence in this .json file.")
@reading_options
def command(
    model: str,
    to: int,
    trained: int | None,
    sources: tuple[str, ...],
    documents: int,
    minutes: float,
    output: Path | None,
    device: str,
    threads: int | None,
    lang: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Recommend a way to let a RoPE model read further, or advise against it: the evidence, and the price.

    Cropping to the training length is what a method has to beat on every text. Measurements appear as they are made,
    the most telling first; Ctrl-C ends them and gives the advice that they support.

    \b
    gnomon advise smollm2-135m-instruct --to 16384
    gnomon advise runs/mine --to 256 --text my_texts/ --documents 16
    """
    from gnomon.checkpoints import load
    from gnomon.device import set_threads
    from gnomon.lab.extending.advice import advise

    set_threads(threads)
    tell = teller(words("extension", lang), quiet or as_json)
    found = advise(
        load(model, device=device),
        to,
        trained=trained,
        text=list(sources),
        documents=documents,
        minutes=minutes,
        hear=tell,
        name=model,
    )
    show(found.to_dict(), found.text(lang), output, as_json)


__all__ = ["command"]
