"""`gnomon lab reproduce NAME`: a published comparison at a small size, with an honest verdict."""

import json
from pathlib import Path

import click

from gnomon.cli.options import json_option, lang_option, quiet_option
from gnomon.cli.output import print_json
from gnomon.glossary import words


@click.command("reproduce")
@click.argument("name", required=False)
@click.option("--seeds", type=click.IntRange(1), help="Models of each kind.  [default: 5]")
@click.option("--workers", type=click.IntRange(min=1), help="Models to train at once.  [default: one per core]")
@click.option("--executor", default="processes", show_default=True, help="serial, processes, ray or ray://HOST:PORT.")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), help="Folder that keeps all results: interrupted, it goes on."
)
@lang_option
@json_option
@quiet_option
def command(
    name: str | None,
    seeds: int | None,
    workers: int | None,
    executor: str,
    output: Path | None,
    lang: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Repeat a published comparison in minutes: its numbers, ours, how the orders agree, and a verdict.

    Without NAME the reproductions are listed. The verdict is computed from the numbers; where the published order does
    not appear at this size, it says so, what appears instead, and what was tried.

    \b
    gnomon lab reproduce
    gnomon lab reproduce alibi-table-2
    gnomon lab reproduce huang-unique-copy --seeds 3 -o runs/huang
    """
    from gnomon.data import atomic
    from gnomon.lab.progress import Progress
    from gnomon.lab.reproductions.catalogue import reproductions
    from gnomon.lab.reproductions.report import reproduce

    if name is None:
        listed = {r.name: r.source for r in reproductions().values()}
        if as_json:
            print_json({"reproductions": listed})
        else:
            click.echo("\n".join([words("reproduce", lang)("all"), "", *(f"  {k:<18} {v}" for k, v in listed.items())]))
        return
    with Progress(quiet or as_json) as progress:
        report = reproduce(name, seeds=seeds, folder=output, workers=workers, executor=executor, watch=progress)
    if output is not None:
        with atomic(output / f"{name}.json") as file:
            file.write((json.dumps(report.to_dict(), indent=1, ensure_ascii=False) + "\n").encode())
    if as_json:
        print_json(report.to_dict())
    else:
        click.echo(report.table(lang))


__all__ = ["command"]
