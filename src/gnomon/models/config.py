"""ModelConfig: everything needed to build a model again, as plain data, and the presets.

Each part of a model states the settings that it reads, once (see `gnomon.settings`); what concerns a whole model is
stated here. A new setting of a part is a field of that part's settings, and nothing here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal, Self

from gnomon.attention.multihead import MultiHeadSettings, NHeads
from gnomon.blocks.experts import MixtureSettings, as_experts
from gnomon.blocks.residual import ResidualSettings
from gnomon.data import Tokenizer
from gnomon.embed.heads import LogitSettings
from gnomon.embed.input import InputSettings
from gnomon.embed.table import Scale
from gnomon.errors import BadValue, must_be, unknown, wrong
from gnomon.kinds import Setting
from gnomon.positions import NoPE, PositionIds, Spec, get
from gnomon.positions.registry import parse_list
from gnomon.settings import DModel, explained, kinds_of

Position = str | Spec | Sequence[str | Spec]
Window = int | None | Sequence[int | None]
Architecture = Literal["decoder-only", "encoder-only", "encoder-decoder"]
HeadActivation = Literal["relu", "gelu", "gelu_tanh", "silu", "tanh", "identity"]
HeadKind = Literal["tokens", "masked", "labels", "pooled", "classes"]
Pooling = Literal["first", "mean"]


@dataclass(frozen=True)
class Sizes:
    """Sizes"""

    # Beyond the largest of them a number is a mistake, and building would fill the memory first.
    vocab_size: Annotated[int, Setting("tokens of the vocabulary", least=1, most=2**31)]
    d_model: DModel
    n_layers: Annotated[int, Setting("blocks of each stack; 0: the tables alone", least=0, most=10_000)]
    n_heads: NHeads


@dataclass(frozen=True, kw_only=True)
class PositionSettings:
    """Position, and what a token sees"""

    position: Annotated[
        Position,
        Setting(
            "a name, gn.positions.get(...), or a list of these that repeats over the layers, 'rope, rope, none' (of "
            "encodings that act in attention)"
        ),
    ] = "rope"
    input_position: Annotated[
        str | Spec | Mapping[str, Any] | None,
        Setting("an encoding at the input besides one that acts in attention", source="MPNet, arXiv:2004.09297"),
    ] = None
    max_positions: Annotated[int | None, Setting("rows of a learned table", least=1, most=2**40)] = None
    causal: Annotated[
        bool, Setting("a token of a decoder-only model sees only what came before it; one of an encoder sees all")
    ] = True
    window: Annotated[
        Window,
        Setting(
            "nearest tokens seen, itself included; or a list of these and none ('all'), repeated over the layers",
            least=1,
            most=2**40,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class StackSettings:
    """Stack"""

    distinct_layers: Annotated[
        int | None,
        Setting(
            "blocks with weights of their own, each used by neighbouring layers; default all of them",
            least=1,
            most=10_000,
            source="ALBERT, arXiv:1909.11942",
        ),
    ] = None
    first_norm: Annotated[
        bool, Setting("a norm before the first attention, besides input_norm", source="ModernBERT, arXiv:2412.13663")
    ] = True


@dataclass(frozen=True, kw_only=True)
class EncoderHeadSettings:
    """Head of an encoder"""

    head: Annotated[
        HeadKind,
        Setting(
            "what it says: logits of 'tokens' or 'masked' ones, 'labels' of tokens, a 'pooled' vector, "
            "'classes' of rows"
        ),
    ] = "tokens"
    n_classes: Annotated[int | None, Setting("of head='labels' and head='classes'", least=1, most=2**20)] = None
    pooling: Annotated[Pooling, Setting("the first token's vector or the mean of all, of 'pooled' and 'classes'")] = (
        "mean"
    )
    pooler: Annotated[bool, Setting("a layer after pooling", source="BERT, arXiv:1810.04805")] = False
    d_pooled: Annotated[
        int | None, Setting("width of the vector after the pooler of 'pooled'; default d_model", least=1, most=2**20)
    ] = None
    unit: Annotated[bool, Setting("the vector of 'pooled' is brought to length 1")] = False
    head_activation: Annotated[
        HeadActivation | None, Setting("of the head's own layer; default gelu of 'masked', tanh of a pooler")
    ] = None


@dataclass(frozen=True, kw_only=True)
class SourceSettings:
    """Encoder-decoder"""

    n_decoder_layers: Annotated[
        int | None, Setting("blocks of the decoder; default n_layers", least=0, most=10_000)
    ] = None
    source_vocab_size: Annotated[
        int | None,
        Setting("tokens of a table of the source's own; default one table for both sides", least=1, most=2**31),
    ] = None
    source_positions: Annotated[
        bool,
        Setting("positions, and a norm, of the source's own beside the shared table", source="BART, arXiv:1910.13461"),
    ] = False


@dataclass(frozen=True)
class Settings(  # in the order of help from below
    SourceSettings,
    EncoderHeadSettings,
    LogitSettings,
    InputSettings,
    StackSettings,
    ResidualSettings,
    MixtureSettings,
    MultiHeadSettings,
    PositionSettings,
    Sizes,
):
    """What a model is given: gn.DecoderOnly(vocab_size, d_model, n_layers, n_heads, position="alibi", ...)."""


@dataclass(frozen=True)
class ModelConfig(Settings):
    """Everything that a model is built from"""

    architecture: Annotated[Architecture, Setting("which of the three it is")] = "decoder-only"

    @property
    def specs(self) -> tuple[Spec, ...]:
        """The encodings as `position` has them: one, or one per layer."""
        return tuple(
            spec
            for spec in ([self.position] if isinstance(self.position, Spec) else self.position)
            if isinstance(spec, Spec)
        )

    @property
    def at_input(self) -> Spec:
        """The encoding of the input layer; "none" where position acts in attention."""
        if isinstance(self.input_position, Spec):
            return self.input_position
        first, *others = self.specs
        return first if first.acts == "input" and not others else Spec(NoPE)

    @property
    def token_scale(self) -> Scale:
        """embed_scale, never "auto"."""
        if self.embed_scale != "auto":
            return self.embed_scale
        fixed = self.at_input.acts == "input" and not self.at_input.takes("std")
        return 1 / self.init_std if fixed and self.init_std > 0 else None

    def per_layer(self, n_layers: int) -> list[Spec]:
        """The encoding that acts in the attention of each of a stack's layers."""
        if isinstance(self.position, Spec):
            return [Spec(NoPE) if self.position.acts == "input" else self.position] * n_layers
        if len(self.specs) > max(n_layers, 1):
            raise BadValue(f"position lists {len(self.specs)} encodings for {n_layers} layers: give fewer")
        for spec in self.specs:
            if spec.acts == "input":
                raise BadValue(
                    f"{spec.name} acts at the input, not in a layer: choose it for the whole model, not in a list"
                )
        return [self.specs[layer % len(self.specs)] for layer in range(n_layers)]

    @property
    def recipe(self) -> PositionIds | None:
        """The recipe for position ids that its encodings were chosen with; a model has one for all of its layers."""
        found = list(dict.fromkeys(spec.positions for spec in self.specs if spec.positions is not None))
        if len(found) > 1:
            raise BadValue(f"all layers read the same positions, but two recipes were given: {found[0]} and {found[1]}")
        return found[0] if found else None

    def fitted(self, tokenizer: Tokenizer) -> Self:
        """The same settings, a recipe for position ids fitted to a vocabulary."""
        specs = tuple(spec.fitted(tokenizer) for spec in self.specs)
        return replace(self, position=specs[0] if isinstance(self.position, Spec) else specs)

    @property
    def depth(self) -> int:
        """Layers of the stack that writes: an encoder-decoder's decoder, or the only one."""
        return self.n_layers if self.n_decoder_layers is None else self.n_decoder_layers

    @property
    def window_pattern(self) -> tuple[int | None, ...]:
        """The windows as they are listed, which repeat over the layers."""
        return tuple(self.window) if isinstance(self.window, Sequence) else (self.window,)

    def windows(self, n_layers: int) -> list[int | None]:
        """The window of each of a stack's layers."""
        pattern = self.window_pattern
        return [pattern[layer % len(pattern)] for layer in range(n_layers)]

    def blocks(self, n_layers: int) -> list[int]:
        """The block, counted from 0, of each of a stack's layers."""
        n = n_layers if self.distinct_layers is None else self.distinct_layers
        return [layer * n // n_layers for layer in range(n_layers)]

    def __post_init__(self) -> None:
        """Raise BadValue for a value that no model can have; settle what has several notations or depends on others."""
        object.__setattr__(self, "position", as_position(self.position))
        object.__setattr__(self, "window", as_window(self.window))
        if self.input_position is not None:
            object.__setattr__(self, "input_position", as_position(self.input_position))
        object.__setattr__(self, "experts", as_experts(self.experts))
        for key, kind in kinds_of(ModelConfig).items():
            must_be(key, getattr(self, key), kind)
        if self.sink_tokens and self.window is None:
            raise BadValue(f"sink_tokens={self.sink_tokens} are seen from outside the window: give a window")
        if self.recipe is not None and self.sink_tokens:
            raise BadValue(f"sink_tokens are the first positions of a text, which {self.recipe} moves: leave one out")
        _check_position(self)
        _check_stack(self)
        _check_residual(self)
        _check_head(self)
        object.__setattr__(self, "embed_scale", self.token_scale)

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready data; `from_dict` brings it back."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        saved = [spec.to_dict() for spec in self.specs]
        plain["position"] = saved[0] if isinstance(self.position, Spec) else saved
        plain["experts"] = None if self.mixture is None else self.mixture.to_dict()
        if isinstance(self.input_position, Spec):
            plain["input_position"] = self.input_position.to_dict()
        plain["window"] = self.window if self.window is None or isinstance(self.window, int) else list(self.window)
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "ModelConfig":
        """From such data. An unknown or missing key, or a value of the wrong type, is a BadValue that names it."""
        must_be("data", data, Mapping, "ModelConfig.from_dict({'vocab_size': 512, 'd_model': 128, ...})")
        for key in data:
            if key not in kinds_of(cls):
                raise unknown("key of a model config", key, kinds_of(cls))
        if missing := [f.name for f in fields(Sizes) if f.name not in data]:
            raise BadValue(f"a model config needs {', '.join(missing)}")
        both_ways = {"causal": False} if data.get("architecture") == "encoder-only" else {}
        return cls(**{**both_ways, **data})


ModelConfig.__doc__ = f"The settings of a model of any architecture.\n\n{explained(ModelConfig)}"


def _check_position(c: ModelConfig) -> None:
    """Raise BadValue for two encodings at the input, and for an input narrower than the head reads."""
    if isinstance(c.input_position, Spec):
        if c.input_position.acts != "input":
            raise BadValue(f"{c.input_position.name} acts in attention, not at the input: give it as position")
        if any(spec.acts == "input" for spec in c.specs):
            raise BadValue(f"two encodings at the input, {c.input_position.name} and {c.specs[0].name}: leave one out")
    if c.d_input is not None and (c.architecture != "encoder-only" or (c.head == "tokens" and c.tied)):
        raise BadValue(
            "d_input is the width of an encoder's input layer, whose table a head for 'tokens' cannot share; got "
            f"architecture={c.architecture!r} and head={c.head!r}"
        )


def _check_stack(c: ModelConfig) -> None:
    """Raise BadValue for layers that share a block and are not alike, and for a first norm that there never is."""
    if not c.first_norm and (c.placement != "pre" or c.residual != "sequential"):
        raise BadValue("first_norm=False goes with placement='pre' and residual='sequential'")
    if c.distinct_layers is None:
        return
    if c.architecture == "encoder-decoder" or c.distinct_layers > c.n_layers:
        raise BadValue(
            f"distinct_layers={c.distinct_layers} of {c.n_layers} layers: there are at most as many as layers, and in "
            f"one stack; this model is {c.architecture}"
        )
    dense = () if c.mixture is None else c.mixture.dense_layers
    kinds: dict[int, tuple[int | None, bool, bool]] = {}
    for layer, (block, window) in enumerate(zip(c.blocks(c.n_layers), c.windows(c.n_layers), strict=True)):
        kind = (window, layer in dense, c.first_norm or layer > 0)
        if kinds.setdefault(block, kind) != kind:
            raise BadValue(f"layer {layer} shares its block with another layer, so both have one window and one kind")


def _check_residual(c: ModelConfig) -> None:
    """Raise BadValue for a wiring that the architecture or the placement of norms does not have."""
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
    if (c.unit or c.d_pooled is not None) and (c.head != "pooled" or (c.d_pooled is not None and not c.pooler)):
        raise BadValue(
            f"unit and d_pooled are of head='pooled', d_pooled of its pooler; got head={c.head!r}, pooler={c.pooler}, "
            f"unit={c.unit} and d_pooled={c.d_pooled}"
        )
    if (c.n_classes is not None) != (c.head in ("labels", "classes")):
        raise BadValue(
            f"n_classes goes with head='labels' or head='classes', which need it; got head={c.head!r} and "
            f"n_classes={c.n_classes}"
        )


def as_position(position: Any) -> Spec | tuple[Spec, ...]:
    """A Spec, or several that repeat over the layers, from a name, a Spec, saved data, a list of these, or the text of
    such a list."""
    if isinstance(position, Spec):
        return position
    if isinstance(position, str):
        listed = parse_list(position)
        return listed[0] if len(listed) == 1 else listed
    if isinstance(position, Mapping) and "name" in position and all(isinstance(key, str) for key in position):
        must_be("the name of a position encoding", position["name"], str)
        return _with_options(as_position(position["name"]), {k: v for k, v in position.items() if k != "name"})
    if isinstance(position, Sequence) and position:
        specs = tuple(spec for spec in map(as_position, position) if isinstance(spec, Spec))
        if len(specs) == len(position):
            return specs
    raise wrong("position", position, "a name, gn.positions.get(...), or a list of these")


def _with_options(position: Spec | tuple[Spec, ...], options: Mapping[str, Any]) -> Spec | tuple[Spec, ...]:
    """The encoding with options added to those that its text gives."""
    if isinstance(position, Spec):
        return get(**{**position.to_dict(), **options}) if options else position
    if options:
        found = ", ".join(options)
        raise BadValue(f"{found}: options of several encodings are written in their list, 'rope(base=1e6), none'")
    return position


def as_window(window: Any) -> int | tuple[int | None, ...] | None:
    """One window for all layers, or a pattern of them; BadValue for anything else. "all" stands for None where a
    notation has no word for it."""
    listed = isinstance(window, Sequence) and not isinstance(window, str)
    pattern = tuple(None if w == "all" else w for w in window) if listed else (window,)
    if not pattern or not all(w is None or type(w) is int for w in pattern):
        raise wrong("window", window, "a whole number, none, or a list of these that repeats over the layers")
    return pattern if listed else pattern[0]


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

    mini-gpt    867 072 parameters: GPT-2's block, 4 layers of width 128, 64 learned positions, 512 tokens
    mini-llama  the same size the modern way: RoPE, RMSNorm, SwiGLU, grouped-query attention, no biases
    gpt2-small  124 439 808 parameters
    vaswani-base  63 082 496 parameters: the original Transformer with one table of 37 000 tokens
    bert-base   109 482 240 parameters: with its pooler, without a head over the vocabulary
    """
    must_be("name", name, str, "such as 'mini-gpt'")
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    return ModelConfig.from_dict(overlaid(PRESETS[name], changes))


def overlaid(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with `changes` laid over them. Options of a position that have no name are those of the base's."""
    position = changes.get("position")
    if not isinstance(position, Mapping) or not position or "name" in position:
        return {**base, **changes}
    own = base.get("position", "rope")
    own = {"name": own} if isinstance(own, str) else own  # its options go with its name
    return {**base, **changes, "position": {**own, **position}}


def presets() -> dict[str, ModelConfig]:
    """The config of every preset by name, as `gn.DecoderOnly.from_preset(name)` builds it; `preset` explains them."""
    return {name: preset(name) for name in PRESETS}


__all__ = [
    "PRESETS",
    "Architecture",
    "HeadKind",
    "ModelConfig",
    "Pooling",
    "Position",
    "Settings",
    "as_position",
    "overlaid",
    "preset",
    "presets",
]
