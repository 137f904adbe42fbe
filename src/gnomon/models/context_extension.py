"""Context extension: a trained model that reads further with the encoding it has; RoPE is scaled, a table grows."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gnomon.available_memory import room_for
from gnomon.embed import InputEmbedding
from gnomon.errors import BadValue, check_arguments, unknown
from gnomon.glossary import message
from gnomon.models.config import ModelConfig
from gnomon.models.model import Model
from gnomon.models.position_change import PositionChange, rebuild
from gnomon.models.snapshot import snapshot
from gnomon.positions import Learned, Spec
from gnomon.positions.scaling import SCALINGS

ROPE_METHODS = tuple(kind for kind in SCALINGS if kind not in ("longrope", "proportional"))  # those need training
TABLE_METHODS = ("interpolate", "tile", "zero")


@check_arguments
def extend(model: Model, to: int, method: str, trained: int | None = None, **options: Any) -> PositionChange:
    """The model with positions up to `to` tokens, `to / trained` times as far as it was trained.

    method   of RoPE: linear, ntk, yarn, llama3 or dynamic; of a learned table: interpolate, tile or zero
    trained  the length it was trained to, default the model's max_positions
    options  of the scaling, such as beta_fast of yarn

    Raises BadValue where the model has nothing that could be scaled, and says what it has.
    """
    trained = model.config.max_positions if trained is None else trained
    if trained is None:
        raise BadValue("the training length of this model is unknown: pass trained=..., in tokens")
    if to <= trained:
        raise BadValue(f"the model was trained to {trained} tokens, so extending it to {to} changes nothing: give more")
    old = snapshot(model).config
    specs = old.position if isinstance(old.position, tuple) else (old.position,)
    if any(spec.name == "learned" for spec in specs):
        return _grow(model, old, to, method)
    if not any(spec.name == "rope" for spec in specs):
        found = " and ".join(sorted({spec.name for spec in specs}))
        raise BadValue(f"{found} has no length to scale: measure how far the model reads, or retrofit another encoding")
    far = _global_encodings(old)
    scaled = [_scale(spec, to / trained, method, trained, options) if spec in far else spec for spec in specs]
    position = tuple(scaled) if isinstance(old.position, tuple) else scaled[0]
    config = replace(old, position=position, max_positions=to)
    key = "scaled_by_length" if method == "dynamic" else "scaled"
    return rebuild(model, config, [message("position_change", key, to=to, method=method, trained=trained)])


def _global_encodings(config: ModelConfig) -> list[Spec]:
    """The encodings of layers that see all of a text, or where there are none, of all layers: what only layers with a
    window have never meets a longer distance, so it stays as it was trained (Gemma 3)."""
    layers = list(zip(config.per_layer(config.n_layers), config.windows(config.n_layers), strict=True))
    far = [spec for spec, window in layers if window is None and spec.name == "rope"]
    return far or [spec for spec, _ in layers]


def _scale(spec: Spec, factor: float, method: str, trained: int, options: Mapping[str, Any]) -> Spec:
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


def _grow(model: Model, old: ModelConfig, to: int, method: str) -> PositionChange:
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
    note = message("position_change", "rows_moved" if method == "interpolate" else "rows_stay")
    return rebuild(model, replace(old, max_positions=to), [note], longer)


__all__ = ["ROPE_METHODS", "TABLE_METHODS", "extend"]
