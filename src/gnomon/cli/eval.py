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
)
from gnomon.cli.output import measures_json, print_json
from gnomon.errors import BadInput, BadValue
from gnomon.glossary import translated, words

if TYPE_CHECKING:
    from gnomon.data import Tokenizer
    from gnomon.models import Model
    from gnomon.tasks import Kind
    from gnomon.train import Evaluation, State, Task, TrainConfig


@click.command("eval", cls=TakesModel)
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--data", multiple=True, metavar="FILE", help="Measure on this instead; may be repeated.")
@device_option
@dtype_option
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
    threads: int | None,
    lang: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Measure the model of the run folder RUN: loss, perplexity, and what its task is measured by.

    It is measured on what was held out when it was trained. Each number comes with the interval that holds the true
    one with 95 % confidence, as far as the choice of the held-out part goes.
    """
    from gnomon.checkpoints import load
    from gnomon.device import resolve_device, set_threads
    from gnomon.train.run import training_dtype

    set_threads(threads)
    where = resolve_device(device)
    precision = training_dtype(dtype, where)
    model = load(run, where, precision if precision.itemsize >= 4 else None)  # narrower ones are for the products alone
    kind, task, config = _on_data(run, model, data, quiet) if data else _as_trained(run, model, quiet)
    task.check(model, config)
    evaluation = task.evaluate(model, precision)
    if as_json:
        print_json({"run": run, "task": kind.name, **measures_json(evaluation)})
    else:
        click.echo(f"{run}: {kind.name}\n{_table(evaluation, lang)}")


def _as_trained(run: Path, model: "Model", quiet: bool) -> "tuple[Kind, Task, TrainConfig]":
    """The task of the run, with the data that it held out."""
    from gnomon.tasks import saved_kind

    state = _state(run)
    if state is None:
        raise BadInput(f"{run} does not say what it was trained on: give it something to be measured on, --data FILE")
    kind = saved_kind(state, run)
    task = kind.task(_tokenizer(run, model), state.config, quiet)
    if task.fingerprint != state.data:
        raise BadInput(
            f"the data that {run} was trained on have changed since, so what was held out is not known any more: "
            "measure it on other data, --data FILE"
        )
    return kind, task, state.config


def _on_data(run: Path, model: "Model", data: tuple[str, ...], quiet: bool) -> "tuple[Kind, Task, TrainConfig]":
    """The task of the run, or else of guessing text, on other data."""
    from gnomon.tasks import find, saved_kind
    from gnomon.train import TrainConfig

    state = _state(run)
    kind = find("text")() if state is None else saved_kind(state, run)
    longest = model.config.max_positions or TrainConfig.length
    config = TrainConfig(length=min(TrainConfig.length, longest)) if state is None else state.config
    return kind, kind.elsewhere(data, _tokenizer(run, model), config, quiet), config


def _state(run: Path) -> "State | None":
    """The state of the run; None for a model that was not trained by `gnomon train`."""
    from gnomon.checkpoints.native import WEIGHTS, read_tensors
    from gnomon.train import read_state

    if read_tensors(run / WEIGHTS)[1].get("step") is None:
        return None
    state = read_state(run)
    return state if "task" in state.origin else None


def _tokenizer(run: Path, model: "Model") -> "Tokenizer":
    if model.tokenizer is None:
        raise BadValue(f"the model in {run} has no tokenizer, so it cannot read data")
    return model.tokenizer


def _table(evaluation: "Evaluation", lang: str) -> str:
    from gnomon.train.evaluation import written

    w = words("eval", lang)

    rows = [
        (translated(name, lang), value, w("to", low=low, high=high), w.number(m.count))
        for name, m in evaluation.measures.items()
        for value, low, high in [[written(name, x, lang) for x in (m.value, m.low, m.high)]]
    ]
    rows.insert(0, ("", w("measured"), w("interval"), w("of")))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [
        f"{row[0]:{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]:>{widths[3]}}" for row in rows
    ]
    return "\n".join([*lines, *evaluation.notes])


__all__ = ["command"]
