"""ModelConfig: everything needed to build a model again, as plain data.

`model_settings.py` says what a model may be given; here is what follows from it, and which settings exclude each other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Self

from gnomon.blocks.experts import as_experts
from gnomon.data import Tokenizer
from gnomon.embed.table import Scale
from gnomon.errors import BadValue, must_be, unknown, wrong
from gnomon.kinds import Setting
from gnomon.models.model_settings import Architecture, ModelSettings, Sizes
from gnomon.positions import NoPE, PositionIds, Spec, get
from gnomon.positions.registry import parse_list
from gnomon.settings import help_text, kinds_of


@dataclass(frozen=True)
class ModelConfig(ModelSettings):
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
        if len(self.specs) > max(n_layers, self.n_layers, self.depth, 1):
            raise BadValue(f"position lists {len(self.specs)} encodings for {n_layers} layers: give fewer")
        for spec in self.specs:
            if spec.acts == "input":
                raise BadValue(
                    f"{spec.name} acts at the input, not in a layer: choose it for the whole model, not in a list"
                )
        return [self.specs[layer % len(self.specs)] for layer in range(n_layers)]

    @property
    def recipe(self) -> PositionIds | None:
        """The recipe for position ids that its encodings were chosen with; a model has one, for all of its layers."""
        specs = (*self.specs, self.at_input)
        found = list(dict.fromkeys(spec.positions for spec in specs if spec.positions is not None))
        if len(found) > 1:
            raise BadValue(f"all layers read the same positions, but two recipes were given: {found[0]} and {found[1]}")
        return found[0] if found else None

    def fitted(self, tokenizer: Tokenizer) -> Self:
        """The same settings, a recipe for position ids fitted to a vocabulary."""
        specs = tuple(spec.fitted(tokenizer) for spec in self.specs)
        first = None if self.input_position is None else self.at_input.fitted(tokenizer)
        return replace(self, position=specs[0] if isinstance(self.position, Spec) else specs, input_position=first)

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


ModelConfig.__doc__ = f"{ModelConfig.__doc__}\n\n{help_text(ModelConfig)}"  # its first line stays: it heads its fields


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


__all__ = ["ModelConfig", "as_position", "as_window"]
