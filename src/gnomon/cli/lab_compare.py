"""`gnomon lab compare A B`: two results of the lab beside each other."""

from pathlib import Path

import click

from gnomon.cli.options import json_option, lang_option
from gnomon.cli.output import print_json


@click.command("compare")
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=click.Path(path_type=Path))
@lang_option
@json_option
def command(a: Path, b: Path, lang: str, as_json: bool) -> None:
    """Compare two results: folders that `gnomon lab` wrote, or their report.json.

    It shows the settings that differ, bits per byte of both at each length they share, and whether the two order the
    encodings alike. Where text, vocabulary or targets differ, it says that the numbers do not compare.
    """
    from gnomon.lab.comparison import compare

    found = compare(a, b)
    if as_json:
        print_json(found.to_dict())
    else:
        click.echo(found.table(lang))


__all__ = ["command"]
