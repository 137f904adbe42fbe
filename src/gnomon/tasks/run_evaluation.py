"""Measure a trained model again: on what its run held out, or on other data."""

from collections.abc import Sequence
from pathlib import Path

import torch

from gnomon.checkpoints import load
from gnomon.checkpoints.native import WEIGHTS, read_tensors
from gnomon.data import Tokenizer
from gnomon.device import resolve_device
from gnomon.errors import BadInput, BadValue, check_arguments
from gnomon.models import Model
from gnomon.native import Kind as Stored
from gnomon.tasks.kind import Kind, find, saved_kind
from gnomon.train import Evaluation, State, Task, TrainConfig, read_state
from gnomon.train.run import training_dtype


@check_arguments
def evaluate(
    run: str | Path,
    data: str | Path | Sequence[str | Path] = (),
    device: torch.device | str = "cpu",
    dtype: str = "auto",
) -> Evaluation:
    """Measure the model of a run folder: loss, perplexity, and what its task is measured by, each with its interval.

    data    files to measure on instead of what was held out when the model was trained
    dtype   of the products: "auto" is float32 on a CPU

    Raises BadInput where the run does not say what it held out, or where that has changed since.
    """
    files = (data,) if isinstance(data, str | Path) else tuple(data)
    return evaluate_with_kind(run, tuple(map(str, files)), device, dtype)[1]


def evaluate_with_kind(
    run: str | Path,
    data: tuple[str, ...],
    device: torch.device | str,
    dtype: str,
    quiet: bool = True,
    weights: Stored | None = None,
) -> tuple[Kind, Evaluation]:
    """What `evaluate` returns, and the kind of task."""
    run = Path(run)
    where = resolve_device(device) if isinstance(device, str) else device
    precision = training_dtype(dtype, where) if weights is None else torch.float32
    kept = (
        precision if weights is None and precision.itemsize >= 4 else None
    )  # narrower ones are for the products alone
    model = load(run, where, kept, weights=weights)
    kind, task, config = _task_on_data(run, model, data, quiet) if data else _held_out_task(run, model, quiet)
    task.check(model, config)
    return kind, task.evaluate(model, precision)


def _held_out_task(run: Path, model: Model, quiet: bool) -> tuple[Kind, Task, TrainConfig]:
    """The task of the run, with the data that it held out."""
    state = _state(run)
    if state is None:
        raise BadInput(f"{run} does not say what it was trained on: give data to measure it on (--data FILE)")
    kind = saved_kind(state, run)
    task = kind.task(_tokenizer(run, model), state.config, quiet)
    if task.fingerprint != state.data:
        raise BadInput(
            f"the data that {run} was trained on have changed since, so what was held out is not known any more: "
            "measure it on other data (--data FILE)"
        )
    return kind, task, state.config


def _task_on_data(run: Path, model: Model, data: tuple[str, ...], quiet: bool) -> tuple[Kind, Task, TrainConfig]:
    """The task of the run, or else of guessing text, on other data."""
    state = _state(run)
    kind = find("text")() if state is None else saved_kind(state, run)
    longest = model.config.max_positions or TrainConfig.length
    config = TrainConfig(length=min(TrainConfig.length, longest)) if state is None else state.config
    return kind, kind.task_on(data, _tokenizer(run, model), config, quiet), config


def _state(run: Path) -> State | None:
    """The state of the run; None for a model that was not trained by `gnomon train`."""
    if read_tensors(run / WEIGHTS)[1].get("step") is None:
        return None
    state = read_state(run)
    return state if "task" in state.origin else None


def _tokenizer(run: Path, model: Model) -> Tokenizer:
    if model.tokenizer is None:
        raise BadValue(f"the model in {run} has no tokenizer, so it cannot read data")
    return model.tokenizer


__all__ = ["evaluate", "evaluate_with_kind"]
