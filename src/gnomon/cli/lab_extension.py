"""`gnomon lab extension MODEL`: methods that let a RoPE model read further, beside each other."""

import json
from pathlib import Path
from typing import Any

import click

from gnomon.cli.experiments import names
from gnomon.cli.lab_tasks import factors
from gnomon.cli.options import (
    TOKENS,
    TakesModel,
    reading_options,
)
from gnomon.cli.output import print_json
from gnomon.glossary import Words, words


@click.command("extension", cls=TakesModel)
@click.argument("model")
@click.option("--factors", callback=factors, default="2,4", show_default=True, help="Of the training length.")
@click.option("--methods", callback=names, help="Such as 'yarn,ntk'.  [default: yarn,dynamic,ntk,llama3,linear]")
@click.option("--trained", type=TOKENS, help="Length it was trained to.  [default: what its files say]")
@click.option("--text", "sources", multiple=True, default=("stdlib",), show_default=True, help="Text to measure on.")
@click.option("--documents", type=click.IntRange(2), default=8, show_default=True, help="Texts that are read.")
@click.option("--trials", type=click.IntRange(0), default=2, show_default=True, help="Passkeys at each depth; 0: none.")
@click.option("--tune", type=click.IntRange(0), default=0, show_default=True, help="Also after so many training steps.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Keep the rows in this .json file.")
@reading_options
def command(
    model: str,
    factors: tuple[float, ...],
    methods: tuple[str, ...] | None,
    trained: int | None,
    sources: tuple[str, ...],
    documents: int,
    trials: int,
    tune: int,
    output: Path | None,
    device: str,
    threads: int | None,
    lang: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Measure ways to let a RoPE model read further: loss by context, cost at short length, passkeys.

    Every loss is of the same tokens, beside that of cropping to the training length, which a method has to beat. Rows
    appear as they are measured; Ctrl-C keeps those that are there. A small model to try it on:

    \b
    gnomon train stdlib --position 'rope(base=200)' --length 64 --steps 400 -o runs/rope64
    gnomon lab extension runs/rope64
    gnomon lab extension smollm2-135m-instruct --factors 1.25 --methods yarn --documents 2
    """
    from gnomon.checkpoints import load
    from gnomon.device import set_threads
    from gnomon.lab.extending.measure import METHODS, reader
    from gnomon.lab.extending.table import ExtensionTable, extension

    set_threads(threads)
    loaded = load(model, device=device)
    table = ExtensionTable(reader(loaded, trained)[1])
    tell = teller(words("extension", lang), quiet or as_json)

    def hear(row: dict[str, Any]) -> None:
        table.append(row)
        tell(row)

    try:
        extension(
            loaded,
            factors=factors,
            methods=methods or METHODS,
            trained=trained,
            text=list(sources),
            documents=documents,
            trials=trials,
            tune=tune,
            hear=hear,
        )
    finally:  # also what was measured before Ctrl-C
        if table:
            show(table.to_dict(), table.table(lang), output, as_json)


def teller(w: Words, quiet: bool) -> Any:
    """What says each row on standard error as it comes."""

    def tell(row: dict[str, Any]) -> None:
        from gnomon.lab.extending.table import named

        name = named(row["method"], row["factor"], row["steps"], w)
        if not quiet:
            fields = {"name": name, "context": row["context"], "value": w.number(row["value"], ".3f")}
            click.echo(w(f"row_{row['measure']}", **fields), err=True)

    return tell


def show(data: dict[str, Any], text: str, output: Path | None, as_json: bool) -> None:
    """Keep what was found, and print it."""
    from gnomon.data import atomic

    if output is not None:
        with atomic(output) as file:
            file.write((json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode())
    if as_json:
        print_json(data)
    else:
        click.echo(text)


__all__ = ["command", "show", "teller"]
