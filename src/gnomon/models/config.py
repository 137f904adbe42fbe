"""ModelConfig: everything needed to build a model again, as plain data, and the presets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from gnomon.blocks.ffn import Activation
from gnomon.blocks.residual import Placement
from gnomon.embed.input import Combine
from gnomon.embed.table import Scale
from gnomon.errors import BadValue, unknown
from gnomon.norm import Norm
from gnomon.positions import Spec, get

Position = Spec | tuple[Spec, ...]


@dataclass(frozen=True)
class ModelConfig:
    """The settings of a DecoderOnly model; its constructor explains them."""

    vocab_size: int
    d_model: int
    n_layers: int
    n_heads: int
    position: Position = field(default_factory=lambda: get("rope"))
    max_positions: int | None = None
    n_kv_heads: int | None = None
    d_head: int | None = None
    d_ff: int | None = None
    activation: Activation = "gelu"
    gated: bool = False
    norm: Norm = "layernorm"
    norm_eps: float = 1e-5
    placement: Placement = "pre"
    bias: bool = True
    dropout: float = 0.0
    causal: bool = True
    window: int | None = None
    tied: bool = True
    embed_scale: Scale = None
    d_embed: int | None = None
    padding_id: int | None = None
    init_std: float = 0.02
    combine: Combine = "add"
    position_dim: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready data; `from_dict` brings it back."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        many = isinstance(self.position, tuple)
        plain["position"] = [p.to_dict() for p in self.position] if many else self.position.to_dict()  # type: ignore[union-attr]
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "ModelConfig":
        """From such data. An unknown or missing key, or a value of the wrong type, is a BadValue that names it."""
        kinds = get_type_hints(cls)
        for key, value in data.items():
            if key not in kinds:
                raise unknown("key of a model config", key, kinds)
            if key != "position":
                _check_kind(key, value, kinds[key])
        missing = [
            f.name
            for f in fields(cls)
            if f.name not in data and f.name in ("vocab_size", "d_model", "n_layers", "n_heads")
        ]
        if missing:
            raise BadValue(f"a model config needs {', '.join(missing)}")
        position = data.get("position", "rope")
        return cls(**{**data, "position": as_position(position)})


def _check_kind(key: str, value: object, kind: Any) -> None:
    """Raise BadValue unless a setting is of the annotated kind: a type, a Literal, or a union of these."""
    if get_origin(kind) is Literal and value not in get_args(kind):
        raise unknown(key, str(value), get_args(kind))
    options = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    if not any(_is_of(value, option) for option in options):
        raise BadValue(f"{key} must be {' or '.join(_described(option) for option in options)}, got {value!r}")


def _is_of(value: object, kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    return type(value) is kind or (kind is float and type(value) is int)  # true is an int to Python, not to us


def _described(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(repr(choice) for choice in get_args(kind))
    words = {int: "a whole number", float: "a number", bool: "true or false", NoneType: "nothing (null)"}
    return words.get(kind, str(kind))


def as_position(position: Any) -> Position:
    """A Spec, or one per layer, from a name, a Spec, saved data, or a list of these."""
    if isinstance(position, Spec):
        return position
    if isinstance(position, str):
        return get(position)
    if isinstance(position, Mapping):
        return get(**position)
    if isinstance(position, Sequence) and position:
        specs = tuple(as_position(p) for p in position)
        if all(isinstance(p, Spec) for p in specs):
            return specs  # type: ignore[return-value]
    raise BadValue(f"position is a name, gn.positions.get(...), or a list of these, one per layer; got {position!r}")


_GPT2 = {"activation": "gelu_tanh", "position": "learned", "tied": True, "dropout": 0.1}
_MINI = {"vocab_size": 512, "d_model": 128, "n_layers": 4, "n_heads": 4}
_LLAMA = {"position": "rope", "activation": "silu", "gated": True, "norm": "rmsnorm", "bias": False, "n_kv_heads": 2}
PRESETS: dict[str, dict[str, Any]] = {
    "mini-gpt": {**_MINI, **_GPT2, "max_positions": 64},
    "mini-llama": {**_MINI, **_LLAMA},
    "gpt2-small": {"vocab_size": 50257, "d_model": 768, "n_layers": 12, "n_heads": 12, "max_positions": 1024, **_GPT2},
}


def preset(name: str, **changes: Any) -> ModelConfig:
    """The config of a preset, with `changes` laid over it.

    mini-gpt    867 072 parameters: GPT-2's block, 4 layers of width 128, 64 learned positions, 512 tokens (S15)
    mini-llama  the same size the modern way: RoPE, RMSNorm, SwiGLU, grouped-query attention, no biases
    gpt2-small  124 439 808 parameters (S14)
    """
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    return ModelConfig.from_dict({**PRESETS[name], **changes})


__all__ = ["PRESETS", "ModelConfig", "Position", "as_position", "preset"]
