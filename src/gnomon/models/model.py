"""Model: what the architectures share. Each is built from a ModelConfig and can be built again from it."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, ClassVar, Self

from torch import nn

from gnomon.data import Tokenizer
from gnomon.embed import InputEmbedding, InputLayer, Tied, Untied
from gnomon.embed.table import scale_and_std
from gnomon.errors import BadValue, must_be
from gnomon.glossary import Message, message
from gnomon.layout import Layout, check_layouts
from gnomon.models.config import ModelConfig
from gnomon.models.heads import Head, TokenHead
from gnomon.models.model_settings import ModelSettings
from gnomon.models.presets import preset
from gnomon.models.signature import OfTheClass, document_settings
from gnomon.models.stack import Stack
from gnomon.positions import PositionEncoding
from gnomon.settings import takes
from gnomon.shapes import Int
from gnomon.show import card


class Model(nn.Module):
    """Base of the architectures; they own an input layer and stacks of blocks."""

    architecture: ClassVar[str]
    input: InputLayer
    head: Tied | Untied | Head

    @takes(ModelSettings)
    def __init__(self, vocab_size: int, d_model: int, n_layers: int, n_heads: int, **settings: Any) -> None:
        """The sizes, and any other setting."""
        super().__init__()
        sizes = {"vocab_size": vocab_size, "d_model": d_model, "n_layers": n_layers, "n_heads": n_heads}
        self.config = ModelConfig.from_dict({"architecture": self.architecture, **sizes, **settings})
        self.tokenizer: Tokenizer | None = None
        self.labels: tuple[str, ...] | None = None  #: names of the classes, for a head that has some
        self.prompts: dict[str, str] = {}  #: what is put before a text for its vector, by name; "" is the usual one
        self.ends: tuple[int, ...] = ()  #: ids that end a text, besides the tokenizer's end-of-text
        self.start: int | None = None  #: the id before the first that a decoder writes, where it is not end-of-text
        self.first: int | None = None  #: the id that a decoder writes first, such as the code of a language
        self.recipe = self.config.recipe  #: of position ids
        self.build(self.config)
        if self.recipe is not None:
            self.recipe.check()  # and whether tables are long enough for all positions that it gives
            last = self.recipe.reach(1) - 1
            self._check(Layout.placed([last if self.recipe.whole else last + 0.5], "cpu"))

    __signature__ = OfTheClass(__init__)  # help() shows the settings

    def __init_subclass__(cls, **given: Any) -> None:
        """help() also explains them."""
        super().__init_subclass__(**given)
        if cls.__init__ is Model.__init__ and cls.__doc__ and not hasattr(cls.build, "__isabstractmethod__"):
            cls.__doc__ = document_settings(cls.__doc__)

    @abstractmethod
    def build(self, config: ModelConfig) -> None:
        """Make the parts."""

    @classmethod
    def from_config(cls, config: ModelConfig) -> Self:
        """Build from a ModelConfig."""
        must_be("config", config, ModelConfig, "gn.ModelConfig(vocab_size=..., d_model=..., n_layers=..., n_heads=...)")
        if config.architecture != cls.architecture:
            raise BadValue(f"this is the config of a model that is {config.architecture}, not {cls.architecture}")
        return cls(**{f.name: getattr(config, f.name) for f in fields(config) if f.name != "architecture"})

    @classmethod
    def from_preset(cls, name: str, **changes: Any) -> Self:
        """Build a preset, with changes: `from_preset("mini-gpt", position="rope")`."""
        return cls.from_config(preset(name, **changes))

    @abstractmethod
    def encodings(self) -> Iterator[PositionEncoding]:
        """Every encoding in the model, each once."""

    def layers_of(self, position: PositionEncoding) -> str:
        """Where one of the model's encodings acts, in words, such as "layers 2, 4 of the encoder"."""
        if position.acts == "input":
            return message("encodings", "the_input")
        places: list[Message] = []
        for name, part in self.named_children():
            if isinstance(part, Stack) and any(p is position for p in part.encodings()):
                mine = [n for n in range(part.depth) if part.position_of(n) is position]
                numbers = ", ".join(str(n + 1) for n in mine)
                if len(mine) == part.depth:
                    here = message("encodings", "all_layers")
                elif len(mine) == 1:
                    here = message("encodings", "layer", number=mine[0] + 1)
                else:
                    here = message("encodings", "layers", numbers=numbers)
                of = {"layers": here, "part": message("encodings", name)} if name in ("encoder", "decoder") else {}
                places.append(message("encodings", "of_part", **of) if of else here)
        if len(places) < 2:
            return places[0] if places else ""
        return message("encodings", "and", first=places[0], second=places[1])

    def _repr_html_(self) -> str:
        c, own = self.config, self.over_vocabulary
        depth = f"{c.n_layers} + {c.depth} layers" if c.architecture == "encoder-decoder" else f"{c.n_layers} layers"
        heads = c.n_heads if c.n_kv_heads in (None, c.n_heads) else f"{c.n_heads} ({c.n_kv_heads} of keys and values)"
        trained = "" if c.max_positions is None else f", {c.max_positions:,} positions"
        return card(
            type(self).__name__,
            {
                "architecture": c.architecture,
                "sizes": f"{depth} of width {c.d_model:,}, {heads} heads, {c.vocab_size:,} tokens{trained}",
                "parameters": f"{sum(p.numel() for p in self.parameters()):,}, {next(self.parameters()).dtype}",
                "position": ", ".join(map(repr, c.specs)),
                "head": c.head + ("" if own is None else ", tied to the token table" if self.tied else ", untied"),
                "tokenizer": "none" if self.tokenizer is None else f"{self.tokenizer.vocab_size:,} tokens",
            },
        )

    def with_recipe(self, ids: Int, at: Layout) -> Layout:
        """Where tokens ids (B, T) are said to sit: `at`, or what the model's recipe for position ids makes of it."""
        if self.recipe is None:
            return at
        return self.recipe.train(ids, at) if self.training else self.recipe.read(ids, at)

    def check(self, at: Layout) -> None:
        """Raise BadValue if an encoding has no meaning at these positions, before anything is computed. Where a recipe
        says where tokens sit, that is known only with the tokens, and checked when they are read."""
        check_layouts(at=at)
        if self.recipe is None or not self.recipe.in_reading:
            self._check(at)

    def _check(self, at: Layout) -> None:
        for position in self.encodings():
            position.check(at)

    def __setattr__(self, name: str, value: Any) -> None:
        """A head that is tied to the input layer stays tied when that is replaced."""
        old = self.__dict__.get("_modules", {}).get("input") if name == "input" else None
        super().__setattr__(name, value)
        if isinstance(old, InputLayer) and isinstance(value, InputLayer):
            for part in self.modules():
                if isinstance(part, Tied):
                    part.follow(old, value)

    @property
    def over_vocabulary(self) -> Tied | Untied | None:
        """What gives a logit per token, where the head does."""
        head = self.head.out if isinstance(self.head, TokenHead) else self.head
        return head if isinstance(head, Tied | Untied) else None

    @property
    def tied(self) -> bool:
        """Whether the logits come from the token table, by a Tied head or by one that was given the same Parameter."""
        head = self.over_vocabulary
        return head is not None and head.weight is self.input.tokens.weight

    def resize(self, vocab_size: int, pad_to_multiple: int = 1) -> int:
        """Change the vocabulary; rounded up to a multiple, returned. Old rows keep their bits, a tie stays a tie.

        Raises BadValue, and changes nothing, where that would cut off an id that the model or its tokenizer uses.
        """
        must_be("vocab_size", vocab_size, int)
        must_be("pad_to_multiple", pad_to_multiple, int)
        if pad_to_multiple < 1:
            raise BadValue(f"pad_to_multiple is a number of rows, at least 1 (no padding); got {pad_to_multiple}")
        size, tied = -(-vocab_size // pad_to_multiple) * pad_to_multiple, self.tied
        self.check_ids(size)
        self.input.tokens.resize(size)
        self.head.resize(size)
        if tied and isinstance(self.over_vocabulary, Untied):
            self.over_vocabulary.weight = self.input.tokens.weight
        self.config = replace(self.config, vocab_size=size)
        return size

    def check_ids(self, vocab_size: int, tokenizer: Tokenizer | None = None) -> None:
        """Raise BadValue unless the ids of a tokenizer (default: the model's), `ends`, `start` and `first` fit a
        vocabulary of this size."""
        tokenizer = self.tokenizer if tokenizer is None else tokenizer
        used = {"model.tokenizer": -1 if tokenizer is None else tokenizer.vocab_size - 1}
        used |= {"model.ends": max(self.ends, default=-1)}
        used |= {f"model.{name}": i for name, i in (("start", self.start), ("first", self.first)) if i is not None}
        for name, most in used.items():
            if most >= vocab_size:
                raise BadValue(
                    f"{name} has the id {most}, which a vocabulary of {vocab_size} does not hold: choose at least "
                    f"{most + 1}, or change {name} first"
                )


def input_layer(c: ModelConfig, vocab_size: int | None = None) -> InputLayer:
    """The input layer of a config; `vocab_size` where this side has a table of its own."""
    size = c.vocab_size if vocab_size is None else vocab_size
    return InputLayer(
        size,
        c.d_model,
        scale=c.token_scale,
        padding_id=c.padding_id,
        d_embed=c.d_embed,
        d_input=c.d_input,
        std=c.init_std,
        **_input_settings(c),
    )


def input_embedding(c: ModelConfig) -> InputEmbedding:
    """An input layer of a config without a table of tokens."""
    scale, std = scale_and_std(c.token_scale, c.init_std, c.d_model)
    return InputEmbedding(c.d_model, size=abs(scale) * std, **_input_settings(c))


def _input_settings(c: ModelConfig) -> dict[str, Any]:
    return {
        "position": c.at_input,
        "max_positions": c.max_positions,
        "combine": c.combine,
        "position_dim": c.position_dim,
        "norm": c.input_norm,
        "norm_eps": c.norm_eps,
        "dropout": c.dropout,
        "n_types": c.n_types,
    }


__all__ = ["Model", "input_embedding", "input_layer"]
