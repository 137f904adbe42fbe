"""`gnomon retrofit MODEL --position alibi`: the same weights under another encoding, ready to be trained again."""

from pathlib import Path

import click

from gnomon.cli.config import plain_settings
from gnomon.cli.options import (
    TakesModel,
    reading_options,
)
from gnomon.cli.position_change import FORMATS, before_and_after, measure_options, report, save
from gnomon.glossary import message


@click.command("retrofit", cls=TakesModel)
@click.argument("model")
@click.option("--position", required=True, help="The new encoding: one of gnomon positions, or yours.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="An option of the encoding: base=1e6.")
@click.option("--output", "-o", type=click.Path(path_type=Path), required=True, help="New folder.")
@click.option(
    "--format", "kind", type=click.Choice(FORMATS), default="native", show_default=True, help="What is written."
)
@click.option(
    "--length", type=click.IntRange(min=2), help="Tokens to measure.  [default: the trained length, at most 1024]"
)
@measure_options
@reading_options
def command(
    model: str,
    position: str,
    settings: tuple[str, ...],
    output: Path,
    kind: str,
    length: int | None,
    count: int,
    sources: tuple[str, ...],
    picture: Path | None,
    device: str,
    threads: int | None,
    lang: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Give MODEL another position encoding; everything else stays bit for bit as it was.

    Such a model has to be trained again for a while: gnomon train --from OUTPUT. Its loss is measured by position
    before and after, so that you see what the change costs and later how much of it came back.
    """
    from gnomon.checkpoints import load
    from gnomon.checkpoints.staging import check_free
    from gnomon.device import set_threads
    from gnomon.models.position_change import retrofit
    from gnomon.plots.picture import picture_format

    if picture is not None:
        picture_format(picture)
    check_free(output)
    set_threads(threads)
    old = load(model, device=device)
    change = retrofit(old, {"name": position, **plain_settings(sets=settings, taken=("name",))})
    length = min(old.config.max_positions or 1024, 1024) if length is None else length
    found = before_and_after(old, change.model, sources, length, count, quiet, lang)
    save(change.model, output, kind)
    what = message("position_change", "retrofitted", model=model, position=position)
    report(what, change, found, output, picture, None, lang, as_json)


__all__ = ["command"]
