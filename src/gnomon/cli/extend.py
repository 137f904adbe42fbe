"""`gnomon extend MODEL --to N --method yarn`: a longer context, measured before and after, and saved."""

from pathlib import Path

import click

from gnomon.available_memory import room_for
from gnomon.cli.config import plain_settings
from gnomon.cli.options import (
    TOKENS,
    TakesModel,
    reading_options,
)
from gnomon.cli.position_change import FORMATS, before_and_after, measure_options, report, save
from gnomon.glossary import message

TAKEN = ("model", "to", "method", "trained", "kind")  # what the arguments say


@click.command("extend", cls=TakesModel)
@click.argument("model")
@click.option("--to", type=TOKENS, required=True, help="Tokens that it shall read.")
@click.option("--method", required=True, help="linear, ntk, yarn, llama3, dynamic; interpolate, tile, zero.")
@click.option("--output", "-o", type=click.Path(path_type=Path), required=True, help="New folder.")
@click.option("--format", "kind", type=click.Choice(FORMATS), default="hf", show_default=True, help="What is written.")
@click.option("--trained", type=TOKENS, help="Length it was trained to.  [default: what its files say]")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A setting of the method: beta_fast=16.")
@measure_options
@reading_options
def command(
    model: str,
    to: int,
    method: str,
    output: Path,
    kind: str,
    trained: int | None,
    settings: tuple[str, ...],
    count: int,
    sources: tuple[str, ...],
    picture: Path | None,
    device: str,
    threads: int | None,
    lang: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Let MODEL read further: scale its RoPE or grow its table of positions, without training.

    MODEL is whatever can be loaded: a run, a Hugging Face folder, a .gguf file, a name. Its loss is measured by
    position on long documents before and after, and the extended model is written as a Hugging Face folder.

    Methods for RoPE are linear, ntk, yarn, llama3 and dynamic; for a learned table interpolate, tile and zero.
    """
    from gnomon.checkpoints import load
    from gnomon.checkpoints.staging import check_free
    from gnomon.device import set_threads
    from gnomon.models.context_extension import extend
    from gnomon.plots.picture import picture_format

    if picture is not None:
        picture_format(picture)
    check_free(output)
    set_threads(threads)
    old = load(model, device=device)
    c = old.config
    if count:
        room_for(4 * to * c.d_model * max(c.n_layers, 1), f"reading {to} tokens at once", "give --documents 0, or less")
    change = extend(old, to, method, trained, **plain_settings(sets=settings, taken=TAKEN))
    found = before_and_after(old, change.model, sources, to, count, quiet, lang)
    save(change.model, output, kind)
    length = old.config.max_positions if trained is None else trained
    what = message("position_change", "extended", model=model, method=method, trained=length, to=to)
    report(what, change, found, output, picture, length, lang, as_json)


__all__ = ["command"]
