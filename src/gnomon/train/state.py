"""The state of a run: what training needs besides the weights to go on as if it had never stopped.

    RUN/training/step-500/optimizer.safetensors   the optimizer's tensors, by the name of their weight
    RUN/training/step-500/shards/                 instead, where processes share the weights: what each of them holds
    RUN/training/step-500/average/                the model with the average of its weights, where there is one
    RUN/training/step-500/lora.safetensors        the changes of low rank; RUN/base/ then holds the model they are to
    RUN/training/step-500/state.json              the step, the settings, a fingerprint of the data

The header of RUN/model.safetensors names the step it belongs to. That file takes its place last, so there is no moment
at which weights meet the optimizer of another step: until then the old pair is there, afterwards the new one.

No random state is kept. The batch and the dropout of a step are functions of the seed and the step alone.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from gnomon.checkpoints.native import (
    WEIGHTS,
    draft,
    fill,
    read_json,
    read_tensors,
    save_model,
    unwrap,
    write_json,
    write_model,
    write_tensors,
)
from gnomon.errors import BadInput
from gnomon.models import Model
from gnomon.settings import annotations_of, check_fields
from gnomon.train.average import Average
from gnomon.train.config import TrainConfig
from gnomon.train.health import Health
from gnomon.train.lora import lora_layers, lora_weights
from gnomon.train.optim import Optimizer
from gnomon.train.optimizer_state import fill_lora, read_optimizer, write_optimizer
from gnomon.train.ranks import ALONE, Ranks
from gnomon.train.spread import gather, is_sharded

TRAINING, STATE, AVERAGE, BASE, CHANGES = "training", "state.json", "average", "base", "lora.safetensors"
AVERAGE_CHANGES = "average-lora.safetensors"
FORMAT = 2
# Settings that format 1 did not have. Runs of that time did what their defaults say.
OF_FORMAT_2 = {
    "schedule",
    "decay",
    "optimizer",
    "ema",
    "on_bad_step",
    "spike",
    "workers",
    "gradient_checkpointing",
    "compile",
    "parallel",
    "save_minutes",
    "keep",
    "keep_best",
    "lora_rank",
    "lora_alpha",
    "lora_targets",
}


@dataclass(frozen=True)
class Best:
    """The least held-out loss so far, and the step it was measured after."""

    step: int
    loss: float


@dataclass(frozen=True)
class State:
    """Where a run is."""

    step: int  #: steps taken or skipped: the place on the schedule and in the data
    config: TrainConfig
    data: str  #: fingerprint of what is trained on
    origin: Mapping[str, Any]  #: what the caller wants back when resuming, such as where the data come from
    health: Health = field(default_factory=Health)
    best: Best | None = None


def save_run(
    folder: Path,
    model: nn.Module,
    optimizer: Optimizer,
    state: State,
    average: Average | None = None,
    ranks: Ranks = ALONE,
) -> None:
    """Save a run such that at every moment, and after a kill at any, the folder holds one whole state of it."""
    current = f"step-{state.step}"
    whole = gather(unwrap(model))
    with _shared_draft(folder, ranks) as new:
        into = new / TRAINING / current
        write_optimizer(into, model, optimizer, ranks)
        if average is not None:
            with average.in_place():
                averaged = gather(unwrap(model))
                if ranks.first:
                    (into / AVERAGE).mkdir()
                    write_model(averaged, into / AVERAGE, step=state.step)
        for name, tensors in _changes(unwrap(model), average).items():
            if ranks.first:
                write_tensors(into / name, tensors)
        if ranks.first:
            write_model(whole, new, step=state.step)
            write_json(into / STATE, {"format": FORMAT, **asdict(state)})
    if ranks.first:
        for other in (folder / TRAINING).iterdir():
            if other.name != current:
                shutil.rmtree(other, ignore_errors=True)


def _changes(model: Model, average: Average | None) -> dict[str, dict[str, Tensor]]:
    """The changes of low rank and their average, by the names of their files; nothing for a model without any."""
    if not (changes := lora_weights(model)):
        return {}
    return {CHANGES: changes} if average is None else {CHANGES: changes, AVERAGE_CHANGES: average.whole()}


def keep_base(model: nn.Module, config: TrainConfig, folder: Path) -> None:
    """Write the model as it is before it gets changes of low rank, where a run trains these alone."""
    if config.lora_rank is not None and Ranks.here().first:
        save_model(model, folder / BASE)


@contextmanager
def _shared_draft(folder: Path, ranks: Ranks) -> Iterator[Path]:
    """A draft that every process writes into and the first one puts into place, once all are done."""
    if not ranks.first:
        yield ranks.from_first(folder)
        ranks.wait()
    else:
        with draft(folder) as new:
            ranks.from_first(new)
            yield new
            ranks.wait()
    ranks.wait()


def read_state(folder: str | Path) -> State:
    """The state that belongs to the weights in a run folder; BadInput where there is none or it is damaged."""
    step = _step_of_the_weights(Path(folder))
    file = state_folder(Path(folder), step) / STATE
    data = read_json(file)
    try:
        config = data.pop("config")
        late = OF_FORMAT_2 if data.pop("format", 1) == 1 else set()
        missing = annotations_of(TrainConfig).keys() - config.keys() - late
        if missing:  # a default is not what the run was told
            raise ValueError(f"its config lacks {', '.join(sorted(missing))}")
        best, health = data.pop("best", None), data.pop("health", {})
        state = State(
            **data,
            config=TrainConfig(**config),
            health=_health(health),
            best=None if best is None else Best(**best),
        )
        check_fields(State, vars(state))
        check_fields(Health, vars(state.health))
        check_fields(Best, {} if state.best is None else vars(state.best))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{file} is damaged or from another version of Gnomon: {error}") from error
    if state.step != step:
        raise BadInput(f"{file} is of step {state.step}, but the weights beside it are of step {step}")
    return state


def _health(data: Mapping[str, Any]) -> Health:
    values: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in data.items()}
    return Health(**values)


def restore(folder: Path, model: nn.Module, optimizer: Optimizer, average: Average | None = None) -> None:
    """Put the saved weights into the model, and the saved tensors into its optimizer and the average."""
    step = _step_of_the_weights(folder)
    saved = state_folder(folder, step)
    if lora_layers(model):
        fill_lora(unwrap(model), read_tensors(saved / CHANGES)[0], saved / CHANGES)
    elif not is_sharded(model):  # else its weights came before they were shared
        fill(model, read_tensors(folder / WEIGHTS)[0], folder / WEIGHTS)
    counted = step - read_state(folder).health.skipped
    read_optimizer(saved, model, optimizer, step, counted)
    if average is not None:
        average.read(saved / (AVERAGE_CHANGES if lora_layers(model) else f"{AVERAGE}/{WEIGHTS}"))


def _step_of_the_weights(folder: Path) -> int:
    step = read_tensors(folder / WEIGHTS)[1].get("step")
    if step is None:
        raise BadInput(f"{folder} holds a model but no state of its training, so it cannot be resumed")
    if not (step.isascii() and step.isdecimal() and len(step) < 20):
        raise BadInput(f"{folder / WEIGHTS} is damaged: it says that it is of step {step!r}")
    return int(step)


def state_folder(folder: Path, step: int) -> Path:
    """Where the state of a step is kept."""
    return folder / TRAINING / f"step-{step}"


__all__ = [
    "AVERAGE",
    "BASE",
    "TRAINING",
    "Best",
    "State",
    "keep_base",
    "read_state",
    "restore",
    "save_run",
    "state_folder",
]
