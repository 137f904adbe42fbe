"""The state of a run: what training needs besides the weights to go on as if it had never stopped.

    RUN/training/step-500/optimizer.safetensors   the optimizer's tensors, by the name of their weight
    RUN/training/step-500/state.json              the step, the settings, a fingerprint of the data

The header of RUN/model.safetensors names the step it belongs to. That file takes its place last, so there is no moment
at which weights meet the optimizer of another step: until then the old pair is there, afterwards the new one.

No random state is kept. The batch and the dropout of a step are functions of the seed and the step alone.
"""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gnomon.checkpoints.native import (
    WEIGHTS,
    draft,
    fill,
    plain_name,
    read_json,
    read_tensors,
    write_json,
    write_model,
    write_tensors,
)
from gnomon.errors import BadInput
from gnomon.settings import annotations_of, check_fields
from gnomon.train.config import TrainConfig

TRAINING, OPTIMIZER, STATE = "training", "optimizer.safetensors", "state.json"
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # what AdamW keeps of each weight
COUNTED = 2**24  # steps that it counts exactly, in float32


@dataclass(frozen=True)
class State:
    """Where a run is."""

    step: int  #: optimizer steps taken: the place on the schedule and in the data
    config: TrainConfig
    data: str  #: fingerprint of what is trained on
    origin: Mapping[str, Any]  #: what the caller wants back when resuming, such as where the data come from


def save_run(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, state: State) -> None:
    """Save a run such that at every moment, and after a kill at any, the folder holds one whole state of it."""
    current = f"step-{state.step}"
    with draft(folder) as new:
        write_model(model, new, step=state.step)
        into = new / TRAINING / current
        into.mkdir(parents=True)
        write_tensors(into / OPTIMIZER, dict(_optimizer_tensors(model, optimizer)))
        write_json(into / STATE, asdict(state))
    for other in (folder / TRAINING).iterdir():
        if other.name != current:
            shutil.rmtree(other, ignore_errors=True)


def read_state(folder: str | Path) -> State:
    """The state that belongs to the weights in a run folder; BadInput where there is none or it is damaged."""
    step = _step_of_the_weights(Path(folder))
    file = _state_folder(Path(folder), step) / STATE
    data = read_json(file)
    try:
        config = data.pop("config")
        if missing := annotations_of(TrainConfig).keys() - config.keys():  # a default is not what the run was told
            raise ValueError(f"its config lacks {', '.join(sorted(missing))}")
        state = State(**data, config=TrainConfig(**config))
        check_fields(State, vars(state))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{file} is damaged or from another version of Gnomon: {error}") from error
    if state.step != step:
        raise BadInput(f"{file} is of step {state.step}, but the weights beside it are of step {step}")
    return state


def restore(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Put the saved weights into the model and the saved tensors into its optimizer."""
    step = _step_of_the_weights(folder)
    fill(model, read_tensors(folder / WEIGHTS)[0], folder / WEIGHTS)
    file = _state_folder(folder, step) / OPTIMIZER
    names = _names(model, optimizer)
    weights = dict(zip(names, (p for group in optimizer.param_groups for p in group["params"]), strict=True))
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in read_tensors(file)[0].items():
        weight, _, key = name.rpartition(".")
        if weight not in weights:
            raise BadInput(f"{file} does not fit the model: it holds {name}, which belongs to none of its weights")
        _check_fits(file, name, key, tensor, weights[weight], step)
        state.setdefault(names.index(weight), {})[key] = tensor.clone()
    for index, name in enumerate(names if step else []):
        if missing := [key for key in MOMENTS if key not in state.get(index, {})]:
            raise BadInput(f"{file} does not fit the model: it lacks {name}.{missing[0]}")
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def _check_fits(file: Path, name: str, key: str, tensor: Tensor, weight: Tensor, step: int) -> None:
    """Raise BadInput for a tensor that is none of the optimizer's, or not that of this weight at this step."""
    if key not in MOMENTS:
        raise BadInput(f"{file} does not fit the model: it holds {name}; there is {', '.join(MOMENTS)} of a weight")
    shape = () if key == "step" else weight.shape
    if tensor.shape != shape or not tensor.is_floating_point():
        raise BadInput(f"{file} does not fit the model: {name} has shape {tuple(tensor.shape)} and is {tensor.dtype}")
    if key == "step" and step < COUNTED and tensor.item() != step:
        raise BadInput(f"{file} is of step {tensor.item():g}, but the weights beside it are of step {step}")


def _step_of_the_weights(folder: Path) -> int:
    step = read_tensors(folder / WEIGHTS)[1].get("step")
    if step is None:
        raise BadInput(f"{folder} holds a model but no state of its training, so it cannot be resumed")
    if not (step.isascii() and step.isdecimal() and len(step) < 20):
        raise BadInput(f"{folder / WEIGHTS} is damaged: it says that it is of step {step!r}")
    return int(step)


def _state_folder(folder: Path, step: int) -> Path:
    return folder / TRAINING / f"step-{step}"


def _optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> Iterator[tuple[str, Tensor]]:
    names = _names(model, optimizer)
    for index, values in optimizer.state_dict()["state"].items():
        for key, tensor in values.items():
            yield f"{names[index]}.{key}", tensor


def _names(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[str]:
    """The names of the optimizer's weights, in its own order."""
    name_of = {id(weight): plain_name(name) for name, weight in model.named_parameters()}
    return [name_of[id(weight)] for group in optimizer.param_groups for weight in group["params"]]


__all__ = ["State", "read_state", "restore", "save_run"]
