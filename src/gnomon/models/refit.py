"""Refit: a trained model with another sense of position, its other weights bit for bit as they were.

extend    reads further with the encoding it has: RoPE scaled, a learned table grown
retrofit  another encoding altogether; it has to be trained again for a while before it is any good
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from gnomon.available_memory import room_for
from gnomon.embed import InputEmbedding
from gnomon.errors import BadValue, checked, unknown
from gnomon.glossary import said
from gnomon.models.architectures import build
from gnomon.models.config import ModelConfig, as_position
from gnomon.models.model import Model
from gnomon.models.snapshot import snapshot
from gnomon.positions import Learned, PositionEncoding, Spec
from gnomon.positions.scaling import SCALINGS

ROPE_METHODS = tuple(kind for kind in SCALINGS if kind not in ("longrope", "proportional"))  # those need training
TABLE_METHODS = ("interpolate", "tile", "zero")


@dataclass(frozen=True)
class Refit:
    """A changed model, and what was changed.

    removed, added   parameters that the old or the new encoding alone has, with their shapes
    kept             how many numbers are bit-equal to the old model's
    notes            what to expect of it
    """

    model: Model
    removed: Mapping[str, tuple[int, ...]]
    added: Mapping[str, tuple[int, ...]]
    kept: int
    notes: list[str] = field(default_factory=list)


@checked
def retrofit(model: Model, position: Any, max_positions: int | None = None) -> Refit:
    """The model under another encoding: a name, `positions.get(...)`, or a list with one per layer.

    max_positions: rows of a learned table, default as many as the model was trained to. Raises BadValue where the
    encoding does not fit the model's sizes.
    """
    chosen, old = as_position(position), snapshot(model).config
    config = replace(old, position=chosen, max_positions=max_positions or old.max_positions)
    notes: list[str] = [said("refit", "train")]
    if config.at_input.name == "none" and model.config.at_input.name != "none":
        notes.insert(0, said("refit", "removed", name=model.config.at_input.name))
    return _rebuilt(model, config, notes)


@checked
def extend(model: Model, to: int, method: str, trained: int | None = None, **options: Any) -> Refit:
    """The model with positions up to `to` tokens, `to / trained` times as far as it was trained.

    method   of RoPE: linear, ntk, yarn, llama3 or dynamic; of a learned table: interpolate, tile or zero
    trained  the length it was trained to, default the model's max_positions
    options  of the scaling, such as beta_fast of yarn

    Raises BadValue where the model has nothing that could be scaled, and says what it has.
    """
    trained = model.config.max_positions if trained is None else trained
    if trained is None:
        raise BadValue("nothing says to what length this model was trained: give trained=..., in tokens")
    if to <= trained:
        raise BadValue(f"the model was trained to {trained} tokens, so extending it to {to} changes nothing: give more")
    old = snapshot(model).config
    specs = old.position if isinstance(old.position, tuple) else (old.position,)
    if any(spec.name == "learned" for spec in specs):
        return _grown(model, old, to, method)
    if not any(spec.name == "rope" for spec in specs):
        found = " and ".join(sorted({spec.name for spec in specs}))
        raise BadValue(f"{found} has no length in it that could be scaled; measure how far it reads, or retrofit it")
    far = _seeing_far(old)
    scaled = [_scaled(spec, to / trained, method, trained, options) if spec in far else spec for spec in specs]
    position = tuple(scaled) if isinstance(old.position, tuple) else scaled[0]
    config = replace(old, position=position, max_positions=to)
    key = "scaled_by_length" if method == "dynamic" else "scaled"
    return _rebuilt(model, config, [said("refit", key, to=to, method=method, trained=trained)])


def _seeing_far(config: ModelConfig) -> list[Spec]:
    """The encodings of layers that see all of a text, or where there are none, of all layers: what only layers with a
    window have never meets a longer distance, so it stays as it was trained (Gemma 3)."""
    layers = list(zip(config.per_layer(config.n_layers), config.windows(config.n_layers), strict=True))
    far = [spec for spec, window in layers if window is None and spec.name == "rope"]
    return far or [spec for spec, _ in layers]


def _scaled(spec: Spec, factor: float, method: str, trained: int, options: Mapping[str, Any]) -> Spec:
    if spec.name != "rope":
        return spec
    if method not in ROPE_METHODS:
        raise unknown("way to extend rope", method, ROPE_METHODS)
    if spec.options.get("scaling"):
        raise BadValue(f"its rope is scaled already, {dict(spec.options['scaling'])}: extend the model that was not")
    needs_length = "original_length" in SCALINGS[method].__dataclass_fields__
    original = {"original_length": trained} if needs_length else {}
    scaling = {"kind": method, "factor": factor, **original, **options}
    return replace(spec, options={**spec.options, "scaling": scaling})


def _grown(model: Model, old: ModelConfig, to: int, method: str) -> Refit:
    if method not in TABLE_METHODS:
        raise unknown("way to grow a learned table", method, TABLE_METHODS)
    room_for(8 * to * model.config.d_model, f"a table of {to} positions", "give less")
    tables = {
        f"{name}.position": layer.position for name, layer in model.named_modules() if isinstance(layer, InputEmbedding)
    }
    longer = {
        f"{name}.weight": table.grow(to, method).weight  # type: ignore[arg-type]
        for name, table in tables.items()
        if isinstance(table, Learned)
    }
    note = said("refit", "rows_moved" if method == "interpolate" else "rows_stay")
    return _rebuilt(model, replace(old, max_positions=to), [note], longer)


def _rebuilt(
    model: Model, config: ModelConfig, notes: list[str], changed: Mapping[str, torch.Tensor] | None = None
) -> Refit:
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
    new.tokenizer, new.labels, new.ends, new.start = model.tokenizer, model.labels, model.ends, model.start
    return Refit(
        new.train(model.training),
        removed={name: tuple(old[name].shape) for name in old if name not in same},
        added={name: tuple(own[name].shape) for name in own if name not in same},
        kept=sum(own[name].numel() for name in same - set(changed or {})),
        notes=notes,
    )


def _of_other_encodings(old: Model, new: Model) -> set[str]:
    """Names of weights in whose place an encoding of another kind stands: the name is the same, the meaning is not."""
    kinds = {name: type(part) for name, part in old.named_modules() if isinstance(part, PositionEncoding)}
    there = ((name, part) for name, part in new.named_modules() if isinstance(part, PositionEncoding))
    changed = [(name, part) for name, part in there if kinds.get(name, type(part)) is not type(part)]
    return {f"{name}.{key}" for name, part in changed for key, _ in part.named_parameters()}


__all__ = ["ROPE_METHODS", "TABLE_METHODS", "Refit", "extend", "retrofit"]
