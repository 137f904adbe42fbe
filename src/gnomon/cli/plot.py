"""`gnomon plot WHAT`: draw encodings, masks, what a norm does, why scores are scaled, where a translator looks."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnomon.cli.config import plain_settings
from gnomon.cli.options import import_option, json_option, lang_option, seed_option, typed_flags
from gnomon.cli.output import print_json
from gnomon.errors import BadValue, unknown

if TYPE_CHECKING:
    from gnomon.models import EncoderDecoder
    from gnomon.plots import Picture
    from gnomon.positions import PositionEncoding, Spec

#: view -> the options of this command that its drawing function takes
VIEWS = {
    "table": ("length", "d_model"),
    "similarity": ("length", "d_model"),
    "wavelengths": ("trained", "d_head", "d_model"),
    "scores": ("length", "trained", "d_head", "seed"),
    "bias": ("length", "n_heads", "causal"),
    "added": ("length", "d_model", "d_head", "n_heads", "causal", "seed"),
    "buckets": ("length", "n_heads", "causal"),
    "scaling": ("d_k", "keys", "seed"),
    "alignment": ("source", "target"),
    "curves": ("length", "d_model", "d_head"),
    "clock": ("d_model", "d_head"),
    "mask": ("length", "kind", "window"),
    "gradient": ("layers", "d_model", "seed"),
    "batch": ("d_model", "seed"),
}
#: what is drawn without an encoding -> its views, the default first
OTHERS = {"scaling": ["scaling"], "mask": ["mask"], "norm": ["gradient", "batch"], "alignment": ["alignment"]}
SIZES = (
    "length",
    "trained",
    "d_model",
    "d_head",
    "n_heads",
    "causal",
    "d_k",
    "keys",
    "seed",
    "source",
    "target",
    "kind",
    "window",
    "layers",
)
SIZE = click.IntRange(1, 2**31 - 1)


@click.command("plot")
@click.argument("what")
@click.option("--view", type=click.Choice(list(VIEWS)), help="What to draw of it.  [default: the first it has]")
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    help="A .png or .svg file.  [default: in this folder, named for what it shows]",
)
@click.option("--run", type=click.Path(path_type=Path), help="Take the encoding out of this trained model.")
@click.option("--length", type=SIZE, help="Positions shown, or the furthest distance.")
@click.option("--trained", type=SIZE, help="The training length to mark (wavelengths, scores).")
@click.option("--d-model", type=SIZE, help="Width of the model.")
@click.option("--d-head", type=SIZE, help="Width of a head.")
@click.option("--n-heads", type=SIZE, help="Heads (bias, buckets).")
@click.option("--causal/--bidirectional", default=True, help="Looking back only, or to both sides (bias, buckets).")
@click.option("--d-k", type=SIZE, help="Head width of the scores drawn (scaling).")
@click.option("--keys", type=SIZE, help="Keys under the softmax (scaling).")
@click.option(
    "--kind", help="causal, bidirectional, padding, packed, window, prefix; or several: packed+window (mask)."
)
@click.option("--window", type=SIZE, help="Tokens of a window, itself included (mask).")
@click.option("--layers", type=SIZE, help="Layers of the stack (norm).")
@click.option("--source", help="The text whose translation is looked at (alignment).")
@click.option("--target", help="The translation.  [default: what the model writes (alignment)]")
@click.option(
    "--set", "settings", metavar="KEY=VALUE", multiple=True, help="An option of the encoding: --set base=1e6."
)
@seed_option
@lang_option
@import_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    what: str,
    view: str | None,
    output: Path | None,
    run: Path | None,
    settings: tuple[str, ...],
    lang: str,
    as_json: bool,
    **_: object,
) -> None:
    """Draw WHAT: the name of an encoding, "mask", "norm", "scaling", or "alignment".

    \b
    sinusoidal  table, similarity, wavelengths, curves, clock
    learned     table, similarity
    rope        wavelengths, scores, curves, clock
    alibi       bias
    t5          buckets, bias
    shaw        added
    others      by where they act: as learned, as rope, bias, or added
    mask        who may see whom: all kinds, or those of --kind
    norm        gradient (by layer, norm before or after), batch (layer norm beside batch norm)
    scaling     why scores are divided by the root of the head width
    alignment   what a trained translator looks at: --run RUN --source TEXT
    """
    from gnomon.plots.picture import picture_format

    views = views_of(what)
    view = view or views[0]
    if view not in views:
        raise BadValue(f"{what} has no view {view!r}; it has {', '.join(views)}")
    output = output or Path(f"{what}.png" if what == view else f"{what}-{view}.png")
    picture_format(output)  # before anything is drawn
    typed = typed_flags(ctx, {name: name for name in SIZES})
    for name in typed:
        if name not in VIEWS[view]:
            raise BadValue(f"--{name.replace('_', '-')} means nothing to the view {view!r} of {what}")
    picture = draw(view, *_subject(what, settings, run, typed), **typed, lang=lang)
    picture.save(output)
    if as_json:
        print_json({"what": what, "view": view, "lang": lang, "file": output, "alt": picture.alt, **picture.facts})
    else:
        click.echo(f"{output}: {picture.alt}")


def views_of(what: str) -> list[str]:
    """What can be drawn of it, the default first. BadValue for an unknown name."""
    from gnomon.glossary import synonyms
    from gnomon.positions import T5, PositionEncoding, encoding, names

    if what in OTHERS:
        return OTHERS[what]
    if what not in names():
        raise unknown("thing to plot", what, [*names(), *OTHERS], synonyms())
    cls = encoding(what)
    of_place: dict[str, list[str]] = {
        "nowhere": [],
        "input": ["table", "similarity"],
        "rotation": ["scores"],
        "score": ["bias"],
        "attention": ["added"],
    }
    views = of_place[cls.acts]
    if not views:
        raise BadValue(f"{what!r} adds, turns and subtracts nothing: there is nothing to draw")
    if cls.frequencies is not PositionEncoding.frequencies:
        turning = ["wavelengths", *views] if cls.acts == "rotation" else [*views, "wavelengths"]
        return [*turning, "curves", "clock"]
    return ["buckets", *views] if cls is T5 else views


def _subject(what: str, settings: tuple[str, ...], run: Path | None, typed: dict[str, Any]) -> list[object]:
    """What the drawing function is given first: a model, an encoding, or nothing."""
    if what == "alignment":
        return [_translator(run, settings, typed)]
    if what not in OTHERS:
        return [_encoding(what, settings, run, typed)]
    if settings or run is not None:
        raise BadValue(f"{what} draws no encoding: --set and --run mean nothing to it")
    kind = typed.pop("kind", None)
    return [] if kind is None else [kind.replace("+", " ").replace(",", " ").split()]


def _encoding(
    what: str, settings: tuple[str, ...], run: Path | None, typed: dict[str, object]
) -> "Spec | PositionEncoding":
    """What to draw: the choice by name, or the module of a trained model, whose causality then counts."""
    from gnomon.checkpoints import load
    from gnomon.models import DecoderOnly
    from gnomon.positions import get

    if run is None:
        return get(what, **plain_settings(sets=settings, taken=("name",)))
    if settings:
        raise BadValue("a trained model's encoding is built already: give --run or --set, not both")
    model = load(run, kind=DecoderOnly)
    there = [model.input.position, *(model.position_of(layer) for layer in range(model.config.n_layers))]
    for position in there:
        if position is not None and position.name == what:
            if position.acts in ("score", "attention"):
                typed["causal"] = model.config.causal
            return position
    names = {position.name for position in there if position is not None}
    found = " and ".join(map(repr, sorted(names - {"none"}))) or "'none'"
    raise BadValue(f"the model in {run} has no {what!r}: its position encoding is {found}")


def _translator(run: Path | None, settings: tuple[str, ...], typed: dict[str, object]) -> "EncoderDecoder":
    """The trained model whose alignment is drawn."""
    from gnomon.checkpoints import load
    from gnomon.models import EncoderDecoder

    if run is None or "source" not in typed:
        raise BadValue("an alignment is that of a trained translator: give --run RUN and --source TEXT")
    if settings:
        raise BadValue("a trained model is built already: leave --set out")
    return load(run, kind=EncoderDecoder)


def draw(view: str, *of: object, **given: object) -> "Picture":
    """The picture of a view, by its name."""
    from gnomon import plots

    functions: dict[str, Any] = {
        "table": plots.heat_map,
        "similarity": plots.similarity,
        "wavelengths": plots.wavelengths,
        "scores": plots.scores,
        "bias": plots.bias,
        "added": plots.added,
        "buckets": plots.buckets,
        "alignment": plots.alignment,
        "curves": plots.curves,
        "clock": plots.clock,
        "mask": plots.mask,
        "gradient": plots.gradient,
        "batch": plots.batch,
        "scaling": plots.scaling,
    }
    picture: Picture = functions[view](*of, **given)
    return picture


__all__ = ["VIEWS", "command", "draw", "views_of"]
