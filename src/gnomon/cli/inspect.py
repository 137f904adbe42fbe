"""`gnomon inspect RUN --text "..."`: one text on its way through a model, in numbers, in words and in one picture."""

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
from gnomon.glossary import Words, said, translated, words

if TYPE_CHECKING:
    from gnomon.models import DecoderOnly, Model
    from gnomon.plots import Inspection
    from gnomon.plots.prefill import Timing

SHOWN, NUMBERS = 24, 5  # tokens in the table of vectors; numbers of each vector
TIMED = 128  # tokens that --timing reads


@click.command("inspect", cls=TakesModel)
@click.argument("run", required=False, type=click.Path(path_type=Path))
@click.option("--preset", help="Inspect a preset with random weights instead of a run.")
@click.option("--position", help="With --preset: its position encoding.")
@click.option("--text", help="What the model reads.")
@click.option("--ids", help="Or token ids: 101,7592,2088,102.")
@click.option("--top", type=click.IntRange(min=1), default=8, show_default=True, help="Candidates for the next token.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Draw it all into this .png or .svg file.")
@click.option("--trained", type=click.IntRange(min=1), help="Length the model was trained to.  [default: its own]")
@click.option("--timing", is_flag=True, help="Time all tokens at once against one after another.")
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
    """Follow a text through a model: ids, vectors, positions, attention, next tokens, with their shapes.

    RUN is the folder of a trained model. With --preset NAME the weights are random; --set d_model=64 changes it, and
    --text is read byte by byte. Without --text it says what kind of position the model has, and how far that reaches.
    """
    from gnomon.device import resolve_device, set_threads
    from gnomon.plots import inspect, parallel_and_sequential
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
    source = str(run) if run is not None else said("inspect", "random", preset=preset, seed=str(seed))
    if text is None and ids is None:
        _positions_of(source, _any_model(run, preset, changes), trained, words("inspect", lang), as_json)
        return
    model = _model(run, preset, changes, seed, text is not None).to(resolve_device(device))
    seen = inspect(model, text if text is not None else _numbers(ids or ""), top)
    timed = parallel_and_sequential(model, _repeated(model, seen.ids)) if timing else None
    if output is not None:
        seen.picture(lang).save(output)
    if as_json:
        print_json({"model": source, **seen.to_dict(), "timing": timed and vars(timed), "file": output})
        return
    w = words("inspect", lang)
    click.echo(_written(source, model, seen, w))
    if timed is not None:
        click.echo("\n" + _timed(timed, w))
    if output is not None:
        click.echo("\n" + w("as_a_picture", file=output))


def _model(run: Path | None, preset: str | None, changes: dict[str, Any], seed: int, reads_text: bool) -> "DecoderOnly":
    import torch

    from gnomon.checkpoints import load
    from gnomon.data import Tokenizer
    from gnomon.models import DecoderOnly

    if run is not None:
        return load(run, kind=DecoderOnly)
    assert preset is not None
    torch.manual_seed(seed)
    model = DecoderOnly.from_preset(preset, **changes)
    if reads_text:
        model.tokenizer = Tokenizer.bytes()
    return model


def _any_model(run: Path | None, preset: str | None, changes: dict[str, Any]) -> "Model":
    from gnomon.checkpoints import load
    from gnomon.models import build
    from gnomon.models import preset as named

    return load(run) if run is not None else build(named(str(preset), **changes))


def _positions_of(source: str, model: "Model", trained: int | None, w: Words, as_json: bool) -> None:
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
        print_json({"model": source, "trained": trained, "encodings": found, "unequal_sizes": unequal})
        return
    sizes = {"layers": c.n_layers, "width": c.d_model, "heads": c.n_heads, "architecture": c.architecture}
    key, sizes = ("a_model", sizes) if trained is None else ("a_trained_model", {**sizes, "trained": trained})
    click.echo(w(key, source=translated(source, w.lang), **sizes))
    for encoding in found:
        layers = translated(encoding["layers"], w.lang)
        click.echo("\n" + w("encoding_in", name=encoding["encoding"], layers=layers))
        for sentence in encoding["says"]:
            click.echo(f"    {translated(sentence, w.lang)}")
    for sentence in unequal:
        click.echo("\n" + translated(sentence, w.lang))
    if trained is None:
        click.echo("\n" + w("give_trained"))


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.replace(",", " ").split()]
    except ValueError as error:
        raise BadValue(f"--ids are whole numbers with commas between them, such as 101,7592; got {text!r}") from error


def _repeated(model: "DecoderOnly", ids: list[int]) -> list[int]:
    """The ids over and over, as far as the model reaches, so that there is something to time."""
    from gnomon.positions import Learned

    position = model.input.position
    length = min(TIMED, position.max_positions) if isinstance(position, Learned) else TIMED
    return (ids * length)[:length]


def _timed(timing: "Timing", w: Words) -> str:
    return w(
        "timing", tokens=timing.tokens, parallel=1000 * timing.parallel, sequential=1000 * timing.sequential,
        ratio=timing.ratio, difference=timing.difference,
    )  # fmt: skip


def _written(source: str, model: "DecoderOnly", seen: "Inspection", w: Words) -> str:
    c, (T, D), V = model.config, seen.vectors.shape, len(seen.logits)
    tokens = model.input.tokens
    table = w(
        "table_rows", shape=f"({c.vocab_size}, {tokens.weight.shape[1]})",
        scale="" if tokens.scale == 1 else w("times", scale=float(tokens.scale)),
    )  # fmt: skip
    where = "; ".join(f"{e.name}, {w(f'acts_{e.acts}')}" for e in seen.encodings)
    shape = f"(1, {T}, {D})" if seen.position is not None else "-"
    steps = ("token_vectors", "step_position", "step_input", "step_attention", "step_output")
    width = max(15, *(len(w(key)) for key in steps))

    def step(name: str, shape: str, what: str) -> str:
        return f"{name:<{width}} {shape:<22} {what}"

    lines = [
        w("model", source=translated(source, w.lang), layers=c.n_layers, width=c.d_model, heads=c.n_heads),
        "",
        step("ids", f"(1, {T})", " ".join(map(str, seen.ids[:SHOWN])) + (" ..." if T > SHOWN else "")),
        step(w("token_vectors"), f"(1, {T}, {D})", table),
        step(w("step_position"), shape, where),
        step(w("step_input"), f"(1, {T}, {D})", w("first_reads")),
        "",
        *_vectors(seen, w),
        "",
        step(w("step_attention"), f"{c.n_layers} x (1, {c.n_heads}, {T}, {T})", w("last_looks")),
        "",
        *(_looks(seen, layer, w) for layer in range(len(seen.attention))),
        "",
        step(w("step_output"), f"(1, {T}, {D})", w("head_reads")),
        step("logits", f"(1, {T}, {V})", w("after_last")),
        "",
        *(_guess(guess, w) for guess in seen.guesses),
    ]
    return "\n".join(lines)


def _vectors(seen: "Inspection", w: Words) -> list[str]:
    """A row per token: its length, that of its position, and the first numbers of what enters the first layer."""
    token, position = w("token"), f"|{w('step_position')}|"
    width = max(*(len(text) for text in seen.tokens[:SHOWN]), len(token))
    heads = f"{'id':>6} {f'|{token}|':>8} {position:>10}   {w('first_numbers')}"
    rows = [f"    {'':>3} {token:<{width}} {heads}"]
    for t, (i, text) in enumerate(zip(seen.ids[:SHOWN], seen.tokens[:SHOWN], strict=True)):
        added = "-" if seen.position is None else w.number(float(seen.position[t % len(seen.position)].norm()), ".3f")
        numbers = " ".join(w.number(float(x), "+.3f") for x in seen.hidden[0][t, :NUMBERS])
        length = w.number(float(seen.vectors[t].norm()), ".3f")
        rows.append(f"    {t:>3} {text:<{width}} {i:>6} {length:>8} {added:>10}   {numbers}")
    hidden = len(seen.ids) - SHOWN
    return rows + ([f"    {w('more', count=hidden)}"] if hidden > 0 else [])


def _looks(seen: "Inspection", layer: int, w: Words) -> str:
    looks = "   ".join(f"{key} {seen.tokens[key]} {weight:.0%}" for key, weight in seen.looks(layer))
    return f"    {w('layer_number', number=layer + 1):<9} {looks}"


def _guess(guess: Any, w: Words) -> str:
    probability, logit = w.number(guess.probability, ".3%"), w.number(guess.logit, "+.3f")
    return f"    {probability:>8}  {logit:>8}  {guess.id:>6}  {guess.token}"


__all__ = ["command"]
