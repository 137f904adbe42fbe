"""`gnomon predict RUN TEXT`: the spans that a trained model finds in a text, or the class it gives it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gnomon.cli.options import TakesModel, device_option, import_option, json_option, lang_option, threads_option
from gnomon.cli.output import print_json
from gnomon.errors import BadInput, BadValue
from gnomon.glossary import numeral

if TYPE_CHECKING:
    from gnomon.data.spans import Span
    from gnomon.models import Model

COLOURS = ("magenta", "blue", "bright_black", "cyan", "green", "yellow", "red")  # of kinds, in their order
SHOWN = 5  # classes printed


@click.command("predict", cls=TakesModel)
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("text")
@device_option
@threads_option
@import_option
@lang_option
@json_option
def command(run: Path, text: str, device: str, threads: int | None, lang: str, as_json: bool) -> None:
    """Let the model in RUN read TEXT (- for standard input): its spans, or its class with probabilities.

    RUN is the folder of a model trained with --task spans or --task classes. On a terminal spans are coloured.
    """
    from gnomon.checkpoints import load
    from gnomon.device import set_threads

    set_threads(threads)
    model = load(run, device)
    head = model.config.head
    if head not in ("labels", "classes"):
        raise BadValue(
            f"the model in {run} is {model.architecture} with a head of {head}, which has no labels to give: predict "
            f"is for runs of the tasks spans and classes. {_suggestion(model)}"
        )
    text = _read() if text == "-" else text
    if head == "labels":
        _spans(run, model, text, as_json)
    else:
        _classes(run, model, text, lang, as_json)


def _suggestion(model: "Model") -> str:
    if model.config.head in ("masked", "tokens") and model.architecture == "encoder-only":
        return "Try gnomon fill"
    return "Try gnomon neighbors" if model.architecture == "encoder-only" else "Try gnomon generate"


def _spans(run: Path, model: "Model", text: str, as_json: bool) -> None:
    from gnomon.data.spans import kinds_of
    from gnomon.tasks.spans import find_spans

    spans = find_spans(model, text, _length(run, 128))
    if as_json:
        plain = [{**span._asdict(), "text": text[span.start : span.end]} for span in spans]
        print_json({"run": run, "text": text, "spans": plain})
        return
    kinds = kinds_of(model.labels or ())
    if sys.stdout.isatty():
        click.echo(_colour_spans(text, spans, kinds))
        click.echo("\n" + " ".join(click.style(kind, fg=_colour(kind, kinds)) for kind in kinds))
    else:
        for span in spans:
            click.echo(f"{span.start}\t{span.end}\t{span.kind}\t{text[span.start : span.end]!r}")


def _colour_spans(text: str, spans: "list[Span]", kinds: list[str]) -> str:
    parts, done = [], 0
    for span in spans:
        parts += [text[done : span.start], click.style(text[span.start : span.end], fg=_colour(span.kind, kinds))]
        done = span.end
    return "".join(parts) + text[done:]


def _colour(kind: str, kinds: list[str]) -> str:
    return COLOURS[kinds.index(kind) % len(COLOURS)]


def _classes(run: Path, model: "Model", text: str, lang: str, as_json: bool) -> None:
    from gnomon.tasks.classes import classify

    found = classify(model, text, _length(run, 128))
    if as_json:
        classes = [{"label": label, "probability": probability} for label, probability in found]
        print_json({"run": run, "text": text, "label": found[0][0], "classes": classes})
        return
    width = max(len(label) for label, _ in found[:SHOWN])
    click.echo(
        "\n".join(f"{label:<{width}}  {numeral(probability, '.2%', lang):>8}" for label, probability in found[:SHOWN])
    )


def _length(run: Path, default: int) -> int:
    """Tokens that the model reads at once: as many as it was trained on, where the folder says it."""
    from gnomon.train import read_state

    try:
        return read_state(run).config.length
    except BadInput:  # a model alone, without the state of its training
        return default


def _read() -> str:
    data = sys.stdin.buffer.read()
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"standard input is not UTF-8: {error.reason} at byte {error.start}") from error


__all__ = ["command"]
