"""`gnomon inspect MODEL --text "..."`: one text on its way through a model, in numbers, in words and in one picture."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnomon.cli.config import plain_settings
from gnomon.cli.options import (
    TakesModel,
    config_options,
    device_option,
    import_option,
    json_option,
    lang_option,
    seed_option,
    threads_option,
)
from gnomon.cli.output import print_json
from gnomon.errors import BadValue
from gnomon.glossary import Words, message, translate, words

if TYPE_CHECKING:
    from gnomon.models import Model
    from gnomon.plots import Inspection
    from gnomon.plots.prefill import Timing


TIMING = "Time these tokens at once against one after another: up to 128, and no more than 2e9 / parameters."


@click.command("inspect", cls=TakesModel)
@click.argument("run", metavar="[MODEL]", required=False, type=click.Path(path_type=Path))
@click.option("--preset", help="Inspect a preset with random weights instead of a run.")
@click.option("--position", help="With --preset: its position encoding.")
@click.option("--text", "--source", "text", help="What the model reads; of an encoder-decoder, the source.")
@click.option("--ids", help="Or token ids: 101,7592,2088,102.")
@click.option("--target", help="Of an encoder-decoder: what it has written, as text or ids.  [default: it writes]")
@click.option("--top", type=click.IntRange(min=1), default=8, show_default=True, help="Candidates for its answer.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Draw it all into this .png or .svg file.")
@click.option("--trained", type=click.IntRange(min=1), help="Length the model was trained to.  [default: its own]")
@click.option("--timing", is_flag=True, help=TIMING)
@config_options("d_model=256")
@seed_option
@device_option
@threads_option
@lang_option
@import_option
@json_option
def command(
    run: Path | None,
    preset: str | None,
    position: str | None,
    text: str | None,
    ids: str | None,
    target: str | None,
    top: int,
    output: Path | None,
    trained: int | None,
    timing: bool,
    config_file: Path | None,
    settings: tuple[str, ...],
    seed: int,
    device: str,
    threads: int | None,
    lang: str,
    as_json: bool,
) -> None:
    """Follow a text through a model: ids, vectors, positions, attention, output, answer, with their shapes.

    MODEL is a run folder, a Hugging Face folder, a .gguf file or the name of a pulled model, of any architecture: a
    decoder-only model names the next token, an encoder answers for what its head was made, and an encoder-decoder
    reads a source and shows cross-attention too. With --preset NAME the weights are random; --set d_model=64 changes
    it, and --text is read byte by byte. Without --text it says what kind of position the model has, and how far that
    reaches.
    """
    from gnomon.cli.inspection_text import inspection_text
    from gnomon.device import resolve_device, set_threads
    from gnomon.plots import inspect
    from gnomon.plots.picture import picture_format

    if (run is None) == (preset is None):
        raise BadValue("give the folder of a trained model, or --preset NAME for random weights: one of the two")
    if text is not None and ids is not None:
        raise BadValue('give --text "..." or --ids 101,7592,2088,102: one of the two')
    if run is not None and (position is not None or settings or config_file is not None):
        raise BadValue("a trained model is built already: --position, --set and --config go with --preset")
    if output is not None:
        picture_format(output)
    set_threads(threads)
    changes = plain_settings(config_file, settings) | ({} if position is None else {"position": position})
    source = str(run) if run is not None else message("inspect", "random", preset=preset, seed=str(seed))
    if text is None and ids is None:
        _describe_positions(source, _model(run, preset, changes), trained, words("inspect", lang), as_json)
        return
    model = _model(run, preset, changes, seed, text is not None).to(resolve_device(device))
    given = text if text is not None else _numbers(ids or "")
    so_far = target if target is None or text is not None else _numbers(target)
    seen = inspect(model, given, top, so_far)
    timed = _timing(model, seen) if timing else None
    if output is not None:
        seen.picture(lang).save(output)
    if as_json:
        print_json({"model": source, **seen.to_dict(), "timing": timed and vars(timed), "file": output})
        return
    w = words("inspect", lang)
    click.echo(inspection_text(source, model, seen, w))
    if timed is not None:
        click.echo("\n" + _timing_text(timed, len(seen.ids), w))
    if output is not None:
        click.echo("\n" + w("as_a_picture", file=output))


def _model(
    run: Path | None, preset: str | None, changes: dict[str, Any], seed: int | None = None, reads_text: bool = False
) -> "Model":
    """The trained model, or a preset with weights drawn from `seed`, which reads text byte by byte."""
    import torch

    from gnomon.checkpoints import load
    from gnomon.data import Tokenizer
    from gnomon.models import build
    from gnomon.models import preset as named

    if run is not None:
        return load(run)
    if seed is not None:
        torch.manual_seed(seed)
    model = build(named(str(preset), **changes))
    if reads_text:
        model.tokenizer = Tokenizer.bytes()
    return model


def _describe_positions(source: str, model: "Model", trained: int | None, w: Words, as_json: bool) -> None:
    """What kind of position the model has, and whether tokens and positions enter at sizes that are far apart."""
    from gnomon.embed import InputLayer

    c = model.config
    trained = c.max_positions if trained is None else trained
    found: list[dict[str, Any]] = [
        {"encoding": e.name, "acts": e.acts, "layers": model.layers_of(e), "says": e.describe(trained)}
        for e in model.encodings()
        if e.name != "none" or c.at_input.name == "none"
    ]
    unequal = [text for layer in model.modules() if isinstance(layer, InputLayer) if (text := layer.balance())]
    if as_json:
        recipe = None if model.recipe is None else str(model.recipe)
        print_json(
            {"model": source, "trained": trained, "encodings": found, "recipe": recipe, "unequal_sizes": unequal}
        )
        return
    sizes = {"layers": c.n_layers, "width": c.d_model, "heads": c.n_heads, "architecture": c.architecture}
    key, sizes = ("a_model", sizes) if trained is None else ("a_trained_model", {**sizes, "trained": trained})
    click.echo(w(key, source=translate(source, w.lang), **sizes))
    for encoding in found:
        layers = translate(encoding["layers"], w.lang)
        click.echo("\n" + w("encoding_in", name=encoding["encoding"], layers=layers))
        for sentence in encoding["says"]:
            click.echo(f"    {translate(sentence, w.lang)}")
    if model.recipe is not None:
        click.echo("\n" + w("recipe", formula=translate(model.recipe.formula, w.lang), recipe=model.recipe))
    for sentence in unequal:
        click.echo("\n" + translate(sentence, w.lang))
    if trained is None:
        click.echo("\n" + w("give_trained"))


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.replace(",", " ").split()]
    except ValueError as error:
        raise BadValue(f"--ids are whole numbers with commas between them, such as 101,7592; got {text!r}") from error


def _timing(model: "Model", seen: "Inspection") -> "Timing":
    """The time of the tokens that were read, or of as many as the bound on work lets."""
    from gnomon.plots.prefill import affordable, parallel_and_sequential

    source = None if seen.source is None else seen.source.ids
    return parallel_and_sequential(model, seen.ids[: affordable(model, len(seen.ids))], source=source)


def _timing_text(timing: "Timing", given: int, w: Words) -> str:
    from gnomon.plots.prefill import MOST

    part = w("timed_part", tokens=timing.tokens, given=given, most=MOST) + "\n" if timing.tokens < given else ""
    return part + w(
        "timing",
        tokens=timing.tokens,
        parallel=1000 * timing.parallel,
        sequential=1000 * timing.sequential,
        ratio=timing.ratio,
        difference=timing.difference,
    )


__all__ = ["command"]
