"""ModelConfig: everything needed to build a model again, as plain data, and the presets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from math import isfinite
from typing import Any, Literal, TypedDict, get_type_hints

from gnomon.blocks.ffn import Activation
from gnomon.blocks.residual import Placement
from gnomon.embed.input import Combine
from gnomon.embed.table import Scale
from gnomon.errors import BadValue, must_be, unknown, wrong
from gnomon.norm import Norm
from gnomon.positions import NoPE, Spec, get

Position = Spec | tuple[Spec, ...]
Window = int | None | tuple[int | None, ...]
Residual = Literal["sequential", "parallel", "one norm"]
Architecture = Literal["decoder-only", "encoder-only", "encoder-decoder"]
HeadKind = Literal["tokens", "masked", "labels", "pooled", "classes"]
Pooling = Literal["first", "mean"]


#: the largest value of each size: beyond these a number is a mistake, and building would fill the memory first
_MOST = {
    "vocab_size": 2**31, "d_model": 2**20, "n_layers": 10_000, "n_heads": 2**16, "n_kv_heads": 2**16, "d_head": 2**20,
    "d_ff": 2**24, "max_positions": 2**40, "sink_tokens": 2**40, "d_embed": 2**20, "position_dim": 2**20,
    "n_classes": 2**20,
}  # fmt: skip
_RANGES = {"dropout": (0.0, 1.0), "norm_eps": (0.0, 1.0), "init_std": (0.0, float("inf"))}


@dataclass(frozen=True)
class ModelConfig:
    """The settings of a model of any architecture.

    vocab_size, d_model, n_layers, n_heads
                   the sizes; n_layers of each stack
    position       a name, gn.positions.get(...), or a list with one per layer (encodings that act in attention)
    max_positions  rows of a learned table
    n_kv_heads     key/value heads shared by groups of query heads; d_head: width of a head, default D / H
    d_ff           feed-forward width, default 4 D (8/3 D when gated); activation, gated: see FeedForward
    norm, norm_eps, placement   "layernorm" or "rmsnorm"; "pre", "post", "sandwich" or "branch"
    bias           biases in the linear layers; qkv_bias, out_bias: in those of attention, where they differ
    dropout        of the input, attention weights and residuals
    residual       "sequential"; "parallel": attention and feed-forward side by side; "one norm": and behind one norm
    residual_scale of what each sublayer adds to the stream
    causal         whether a token sees only what came before it (of a decoder-only model; an encoder never is)
    window         nearest tokens seen in each layer; or a list of windows and None ("all"), repeated over the layers
    sink_tokens    first tokens of a document that stay visible from outside the window
    attention_scale, softcap, sinks   of the scores: see MultiHeadAttention
    qk_norm        RMSNorm on the queries and keys of each head, or "joint" over all heads together
    tied           the head uses the token table; head_bias: one number per token; head_scale: of the logits;
                   head_softcap c: logits l become c tanh(l / c)
    embed_scale, d_embed, padding_id   see TokenEmbedding. embed_scale "auto" is 1 / init_std where position vectors of
                   a fixed size are added (sinusoidal), so that tokens enter at unit size, as in the original
                   Transformer, while tied logits begin small; else None. What it came to is kept
    init_std       of linear layers and tables; projections into the residual stream get it / sqrt(2 n_layers)
    combine        how an encoding that acts at the input meets the token vectors, and position_dim: see InputLayer
    n_decoder_layers, source_vocab_size, source_positions   of an encoder-decoder: see EncoderDecoder
    n_types, input_norm                   of an encoder: see InputLayer
    head           of an encoder, see HEADS; n_classes: of "labels" and "classes"
    pooling        of "pooled" and "classes": the "first" token's vector or the "mean"; pooler: a tanh layer after it
    """

    vocab_size: int
    d_model: int
    n_layers: int
    n_heads: int
    architecture: Architecture = "decoder-only"
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
    qkv_bias: bool | None = None
    out_bias: bool | None = None
    dropout: float = 0.0
    residual: Residual = "sequential"
    residual_scale: float = 1.0
    causal: bool = True
    window: Window = None
    sink_tokens: int = 0
    attention_scale: float | None = None
    softcap: float | None = None
    sinks: bool = False
    qk_norm: bool | Literal["joint"] = False
    tied: bool = True
    head_bias: bool = False
    head_scale: float = 1.0
    head_softcap: float | None = None
    embed_scale: Scale | Literal["auto"] = "auto"
    d_embed: int | None = None
    padding_id: int | None = None
    init_std: float = 0.02
    combine: Combine = "add"
    position_dim: int | None = None
    n_decoder_layers: int | None = None
    source_vocab_size: int | None = None
    source_positions: bool = False
    n_types: int = 0
    input_norm: Norm | None = None
    head: HeadKind = "tokens"
    n_classes: int | None = None
    pooling: Pooling = "mean"
    pooler: bool = False

    @property
    def token_scale(self) -> Scale:
        """embed_scale, never "auto"."""
        if self.embed_scale != "auto":
            return self.embed_scale
        fixed = self.at_input.acts == "input" and not self.at_input.takes("std")
        return 1 / self.init_std if fixed and self.init_std > 0 else None

    @property
    def at_input(self) -> Spec:
        """The encoding of the input layer; "none" where position acts in attention."""
        if isinstance(self.position, Spec) and self.position.acts == "input":
            return self.position
        return Spec(NoPE)

    def per_layer(self, n_layers: int) -> list[Spec]:
        """The encoding that acts in the attention of each of a stack's layers."""
        if isinstance(self.position, Spec):
            return [Spec(NoPE) if self.position.acts == "input" else self.position] * n_layers
        if len(self.position) != n_layers:
            raise BadValue(f"position lists {len(self.position)} encodings for {n_layers} layers; give one per layer")
        for spec in self.position:
            if spec.acts == "input":
                raise BadValue(
                    f"{spec.name} acts at the input, not in a layer: choose it for the whole model, not in a list"
                )
        return list(self.position)

    @property
    def depth(self) -> int:
        """Layers of the stack that writes: an encoder-decoder's decoder, or the only one."""
        return self.n_layers if self.n_decoder_layers is None else self.n_decoder_layers

    def windows(self, n_layers: int) -> list[int | None]:
        """The window of each of a stack's layers."""
        pattern = self.window if isinstance(self.window, tuple) else (self.window,)
        return [pattern[layer % len(pattern)] for layer in range(n_layers)]

    def __post_init__(self) -> None:
        """Raise BadValue for a number that no model can have; settle what depends on other settings."""
        for key, kind in _kinds().items():
            must_be(key, getattr(self, key), kind)
        object.__setattr__(self, "position", as_position(self.position))
        object.__setattr__(self, "window", as_window(self.window))
        for window in self.windows(len(self.window) if isinstance(self.window, tuple) else 1):
            if window is not None and not 1 <= window <= 2**40:
                raise BadValue(f"a window counts the token itself, so it must be at least 1; got {window}")
        if self.sink_tokens and self.window is None:
            raise BadValue(f"sink_tokens={self.sink_tokens} means tokens seen from outside the window: give a window")
        for name, cap in (("softcap", self.softcap), ("head_softcap", self.head_softcap)):
            if cap is not None and not (isfinite(cap) and cap > 0):
                raise BadValue(f"{name} must be a number above 0, or none for no cap; got {cap}")
        _check_residual(self)
        for name, most in _MOST.items():
            value = getattr(self, name)
            least = 0 if name in ("n_layers", "sink_tokens") else 1  # no layers at all: the tables alone
            if value is not None and not least <= value <= most:
                raise BadValue(f"{name} must be between {least} and {most}, got {value}")
        for name, (low, high) in _RANGES.items():
            if not low <= getattr(self, name) < high:
                raise BadValue(f"{name} must be at least {low:g} and below {high:g}, got {getattr(self, name)}")
        if isinstance(self.embed_scale, float) and not isfinite(self.embed_scale):
            raise BadValue(f"embed_scale must be 'sqrt', 'rounded sqrt', a number or nothing, got {self.embed_scale}")
        _check_head(self)
        object.__setattr__(self, "embed_scale", self.token_scale)

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready data; `from_dict` brings it back."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        many = isinstance(self.position, tuple)
        plain["position"] = [p.to_dict() for p in self.position] if many else self.position.to_dict()  # type: ignore[union-attr]
        plain["window"] = list(self.window) if isinstance(self.window, tuple) else self.window
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "ModelConfig":
        """From such data. An unknown or missing key, or a value of the wrong type, is a BadValue that names it."""
        must_be("data", data, Mapping, "ModelConfig.from_dict({'vocab_size': 512, 'd_model': 128, ...})")
        kinds = get_type_hints(cls)
        for key in data:
            if key not in kinds:
                raise unknown("key of a model config", key, kinds)
        missing = [
            f.name
            for f in fields(cls)
            if f.name not in data and f.name in ("vocab_size", "d_model", "n_layers", "n_heads")
        ]
        if missing:
            raise BadValue(f"a model config needs {', '.join(missing)}")
        position = data.get("position", "rope")
        if data.get("architecture") == "encoder-only":
            data = {"causal": False, **data}
        return cls(**{**data, "position": as_position(position), "window": as_window(data.get("window"))})


@cache
def _kinds() -> dict[str, Any]:
    """The kind of each setting but those that have several notations."""
    hints = get_type_hints(ModelConfig)
    return {key: kind for key, kind in hints.items() if key not in ("position", "window")}


def _check_residual(c: ModelConfig) -> None:
    """Raise BadValue for a wiring that the architecture or the placement of norms does not have."""
    if not isfinite(c.residual_scale):
        raise BadValue(f"residual_scale must be a number, got {c.residual_scale}")
    placements = {"parallel": ("pre", "sandwich"), "one norm": ("pre",)}.get(c.residual)
    if placements and (c.placement not in placements or c.architecture == "encoder-decoder"):
        raise BadValue(
            f"sublayers side by side are for models without cross-attention, and residual={c.residual!r} is for "
            f"placement {' or '.join(map(repr, placements))}; got architecture={c.architecture!r} and "
            f"placement={c.placement!r}"
        )


def _check_head(c: ModelConfig) -> None:
    """Raise BadValue for a head that this architecture does not have, or without the number it needs."""
    if c.head != "tokens" and c.architecture != "encoder-only":
        raise BadValue(f"a head of {c.head} goes with an encoder: this model is {c.architecture} and has head='tokens'")
    if (c.n_classes is not None) != (c.head in ("labels", "classes")):
        raise BadValue(
            f"n_classes goes with head='labels' or head='classes', which need it; got head={c.head!r} and "
            f"n_classes={c.n_classes}"
        )


def as_position(position: Any) -> Position:
    """A Spec, or one per layer, from a name, a Spec, saved data, or a list of these."""
    if isinstance(position, Spec):
        return position
    if isinstance(position, str):
        return get(position)
    if isinstance(position, Mapping) and "name" in position and all(isinstance(key, str) for key in position):
        return get(**position)
    if isinstance(position, Sequence) and position:
        specs = tuple(as_position(p) for p in position)
        if all(isinstance(p, Spec) for p in specs):
            return specs  # type: ignore[return-value]
    raise wrong("position", position, "a name, gn.positions.get(...), or a list of these, one per layer")


def as_window(window: Any) -> Window:
    """One window for all layers, or a pattern of them; BadValue for anything else. "all" stands for None where a
    notation has no word for it."""
    listed = isinstance(window, Sequence) and not isinstance(window, str)
    pattern = tuple(None if w == "all" else w for w in window) if listed else (window,)
    if not pattern or not all(w is None or type(w) is int for w in pattern):
        raise wrong("window", window, "a whole number, none, or a list of these that repeats over the layers")
    return pattern if listed else pattern[0]


class Settings(TypedDict, total=False):
    """The fields of ModelConfig that are given by keyword; it explains them."""

    position: str | Position | Sequence[str | Spec]
    max_positions: int | None
    n_kv_heads: int | None
    d_head: int | None
    d_ff: int | None
    activation: Activation
    gated: bool
    norm: Norm
    norm_eps: float
    placement: Placement
    bias: bool
    qkv_bias: bool | None
    out_bias: bool | None
    dropout: float
    residual: Residual
    residual_scale: float
    causal: bool
    window: Window | Sequence[int | None]
    sink_tokens: int
    attention_scale: float | None
    softcap: float | None
    sinks: bool
    qk_norm: bool | Literal["joint"]
    tied: bool
    head_bias: bool
    head_scale: float
    head_softcap: float | None
    embed_scale: Scale | Literal["auto"]
    d_embed: int | None
    padding_id: int | None
    init_std: float
    combine: Combine
    position_dim: int | None
    n_decoder_layers: int | None
    source_vocab_size: int | None
    source_positions: bool
    n_types: int
    input_norm: Norm | None
    head: HeadKind
    n_classes: int | None
    pooling: Pooling
    pooler: bool


_GPT2 = {"activation": "gelu_tanh", "position": "learned", "tied": True, "dropout": 0.1}
_MINI = {"vocab_size": 512, "d_model": 128, "n_layers": 4, "n_heads": 4}
_LLAMA = {"position": "rope", "activation": "silu", "gated": True, "norm": "rmsnorm", "bias": False, "n_kv_heads": 2}
_VASWANI = {"position": "sinusoidal", "activation": "relu", "placement": "post", "embed_scale": "sqrt", "dropout": 0.1}
_BERT = {
    "position": "learned", "activation": "gelu", "placement": "post", "norm_eps": 1e-12, "n_types": 2,
    "input_norm": "layernorm", "dropout": 0.1,
}  # fmt: skip
PRESETS: dict[str, dict[str, Any]] = {
    "mini-gpt": {**_MINI, **_GPT2, "max_positions": 64},
    "mini-llama": {**_MINI, **_LLAMA},
    "gpt2-small": {"vocab_size": 50257, "d_model": 768, "n_layers": 12, "n_heads": 12, "max_positions": 1024, **_GPT2},
    "vaswani-base": {
        "architecture": "encoder-decoder", "vocab_size": 37000, "d_model": 512, "n_layers": 6, "n_heads": 8, **_VASWANI
    },
    "bert-base": {
        "architecture": "encoder-only", "causal": False, "vocab_size": 30522, "d_model": 768, "n_layers": 12,
        "n_heads": 12, "max_positions": 512, "head": "pooled", "pooling": "first", "pooler": True, **_BERT,
    },
}  # fmt: skip


def preset(name: str, /, **changes: Any) -> ModelConfig:
    """The config of a preset, with `changes` laid over it.

    mini-gpt    867 072 parameters: GPT-2's block, 4 layers of width 128, 64 learned positions, 512 tokens (S15)
    mini-llama  the same size the modern way: RoPE, RMSNorm, SwiGLU, grouped-query attention, no biases
    gpt2-small  124 439 808 parameters (S14)
    vaswani-base  63 082 496 parameters: the original Transformer with one table of 37 000 tokens
    bert-base   109 482 240 parameters: with its pooler, without a head over the vocabulary
    """
    must_be("name", name, str, "such as 'mini-gpt'")
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    return ModelConfig.from_dict({**PRESETS[name], **changes})


def presets() -> dict[str, ModelConfig]:
    """The config of every preset by name, as `gn.DecoderOnly.from_preset(name)` builds it; `preset` explains them."""
    return {name: preset(name) for name in PRESETS}


__all__ = [
    "PRESETS", "Architecture", "HeadKind", "ModelConfig", "Pooling", "Position", "Settings", "as_position", "preset",
    "presets",
]  # fmt: skip
