"""Position change: a trained model with another sense of position, its other weights bit for bit as they were.

`retrofit` gives it another encoding; it has to be trained again for a while before it is any good. To read further
with the encoding it has: `context_extension`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from gnomon.errors import BadValue, check_arguments
from gnomon.glossary import message
from gnomon.models.architectures import build
from gnomon.models.config import ModelConfig, as_position
from gnomon.models.model import Model
from gnomon.models.snapshot import snapshot
from gnomon.positions import PositionEncoding


@dataclass(frozen=True)
class PositionChange:
    """A changed model, and what was changed.

    removed, added   parameters that the old or the new encoding alone has, with their shapes
    unchanged        how many numbers are bit-equal to the old model's
    notes            what to expect of it
    """

    model: Model
    removed: Mapping[str, tuple[int, ...]]
    added: Mapping[str, tuple[int, ...]]
    unchanged: int
    notes: list[str] = field(default_factory=list)


@check_arguments
def retrofit(model: Model, position: Any, max_positions: int | None = None) -> PositionChange:
    """The model under another encoding: a name, `positions.get(...)`, or a list with one per layer.

    max_positions: rows of a learned table, default as many as the model was trained to. Raises BadValue where the
    encoding does not fit the model's sizes.
    """
    chosen, old = as_position(position), snapshot(model).config
    config = replace(old, position=chosen, max_positions=max_positions or old.max_positions)
    notes: list[str] = [message("position_change", "train")]
    if config.at_input.name == "none" and model.config.at_input.name != "none":
        notes.insert(0, message("position_change", "removed", name=model.config.at_input.name))
    return rebuild(model, config, notes)


def rebuild(
    model: Model, config: ModelConfig, notes: list[str], changed: Mapping[str, torch.Tensor] | None = None
) -> PositionChange:
    """A new model of `config` with all of the old weights that it has a place for, and the `changed` ones."""
    with torch.random.fork_rng(devices=[]):
        new = build(config)
    first = next(model.parameters())
    new = new.to(first.device, first.dtype)
    old, own = {**snapshot(model).weights, **(changed or {})}, new.state_dict()
    shared = (own.keys() & old.keys()) - _of_other_encodings(model, new)
    same = {name for name in shared if old[name].shape == own[name].shape}
    lost = shared - same
    if lost:
        raise BadValue(f"the new encoding has another shape for {', '.join(sorted(lost))}, so its weights do not fit")
    with torch.no_grad():
        for name in same:
            own[name].copy_(old[name])
    new.prompts = dict(model.prompts)
    new.tokenizer, new.labels = model.tokenizer, model.labels
    new.ends, new.start, new.first = model.ends, model.start, model.first
    return PositionChange(
        new.train(model.training),
        removed={name: tuple(old[name].shape) for name in old if name not in same},
        added={name: tuple(own[name].shape) for name in own if name not in same},
        unchanged=sum(own[name].numel() for name in same - set(changed or {})),
        notes=notes,
    )


def _of_other_encodings(old: Model, new: Model) -> set[str]:
    """Names of weights in whose place an encoding of another kind stands: the name is the same, the meaning is not."""
    kinds = {name: type(part) for name, part in old.named_modules() if isinstance(part, PositionEncoding)}
    there = ((name, part) for name, part in new.named_modules() if isinstance(part, PositionEncoding))
    changed = [(name, part) for name, part in there if kinds.get(name, type(part)) is not type(part)]
    return {f"{name}.{key}" for name, part in changed for key, _ in part.named_parameters()}


__all__ = ["PositionChange", "rebuild", "retrofit"]
