"""`gnomon eval`: what a trained model is worth, measured again on what its run held out, or on other data."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gnomon.cli.options import (
    TakesModel,
    device_option,
    dtype_option,
    import_option,
    json_option,
    lang_option,
    quiet_option,
    threads_option,
    weights_option,
)
from gnomon.cli.output import measures_json, print_json
from gnomon.glossary import translate, words

if TYPE_CHECKING:
    from gnomon.native import Kind
    from gnomon.train import Evaluation


@click.command("eval", cls=TakesModel)
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--data", multiple=True, metavar="FILE", help="Measure on this instead; may be repeated.")
@device_option
@dtype_option
@weights_option
@threads_option
@import_option
@lang_option
@json_option
@quiet_option
def command(
    run: Path,
    data: tuple[str, ...],
    device: str,
    dtype: str,
    weights: "Kind | None",
    threads: int | None,
    lang: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Measure the model of the run folder RUN: loss, perplexity, and what its task is measured by.

    It is measured on what was held out when it was trained. Each number comes with the interval that holds the true
    one with 95 % confidence, as far as the choice of the held-out part goes.
    """
    from gnomon.device import set_threads
    from gnomon.tasks.run_evaluation import evaluate_with_kind

    set_threads(threads)
    kind, evaluation = evaluate_with_kind(run, data, device, dtype, quiet, weights)
    if as_json:
        print_json({"run": run, "task": kind.name, **measures_json(evaluation)})
    else:
        click.echo(f"{run}: {kind.name}\n{_table(evaluation, lang)}")


def _table(evaluation: "Evaluation", lang: str) -> str:
    from gnomon.train.evaluation import measure_text

    w = words("eval", lang)

    rows = [
        (translate(name, lang), value, w("to", low=low, high=high), w.number(m.count))
        for name, m in evaluation.measures.items()
        for value, low, high in [[measure_text(name, x, lang) for x in (m.value, m.low, m.high)]]
    ]
    rows.insert(0, ("", w("measured"), w("interval"), w("of")))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [
        f"{row[0]:{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]:>{widths[3]}}" for row in rows
    ]
    return "\n".join([*lines, *evaluation.notes])


__all__ = ["command"]
