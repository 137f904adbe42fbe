"""What a recipe for position ids is, and how one is chosen by name.

A recipe replaces the positions of a batch where it enters the model, before any encoding reads them:

    training      at = recipe.train(ids, at)     may draw: from torch's own stream of random numbers, on the CPU
    otherwise     at = recipe.read(ids, at)      a function of the tokens and of where they sit

Time, documents and padding stay as they are, so masks, windows and caches mean the same; all layers get the same
positions. A recipe of your own is one frozen dataclass, for example positions = f(tokens) (position coupling: Cho et
al. 2024, arXiv:2405.20671); its fields are its options, and importing its file is the registration.
"""

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields, replace
from typing import Any, ClassVar, Self, get_type_hints

import torch

from gnomon.data import Tokenizer
from gnomon.errors import BadValue, must_be, unknown, wrong
from gnomon.layout import Layout
from gnomon.positions.notation import call, to_text
from gnomon.shapes import Float, Int

_RECIPES: dict[str, type["PositionIds"]] = {}


@dataclass(frozen=True)
class PositionIds:
    """Base of all recipes. A subclass states `name` and `paper`, and overrides `train`, `read` or both."""

    name: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    cite: ClassVar[str] = ""  #: a BibTeX entry
    formula: ClassVar[str] = ""  #: positions in training, in one line
    whole: ClassVar[bool] = True  #: its positions are whole numbers

    def __init_subclass__(cls) -> None:
        if not cls.name:
            raise BadValue(f"class {cls.__name__} needs a name: the word people choose it by, e.g. name = 'mine'")
        other = _RECIPES.get(cls.name)
        if other is not None and (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
            raise BadValue(f"the name {cls.name!r} already belongs to {other.__module__}.{other.__qualname__}")
        _RECIPES[cls.name] = cls

    def __post_init__(self) -> None:
        """Raise BadValue for an option of the wrong type; the fields are dataclass fields."""
        for option, kind in _options(type(self)).items():
            must_be(option, getattr(self, option), kind)

    def train(self, ids: Int, at: Layout) -> Layout:
        """Where the tokens ids (B, T) are said to sit in training; by default as in reading."""
        return self.read(ids, at)

    def read(self, ids: Int, at: Layout) -> Layout:
        """Where they sit otherwise. What it gives may depend on the tokens, on their documents and on their order there
        (`documents(at)`), not on `at.pos`: a text that goes on from a cache is told again from its beginning."""
        return at

    @property
    def in_reading(self) -> bool:
        """Whether positions differ outside training, too."""
        return type(self).read is not PositionIds.read

    def reach(self, length: int) -> int:
        """How many positions a text of so many tokens may need: rows of a learned table."""
        return length

    def fitted(self, tokenizer: Tokenizer) -> Self:
        """The same recipe with what it needs to know of a vocabulary, where that was not given."""
        return self

    def check(self) -> None:
        """Raise BadValue where something is missing without which no model can use it."""

    def to_dict(self) -> dict[str, Any]:
        """As plain data; `position_ids` brings it back."""
        return {"name": self.name, **_given_options(self)}

    def __str__(self) -> str:
        return to_text(self.name, _given_options(self))


def _options(cls: type[PositionIds]) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {f.name: hints[f.name] for f in fields(cls)}


def _given_options(recipe: PositionIds) -> dict[str, Any]:
    """The options that are not the defaults; lists for tuples."""
    usual = {f.name: f.default for f in fields(recipe)}
    given = {k: v for k, v in asdict(recipe).items() if v != usual[k]}
    return {k: list(v) if isinstance(v, tuple) else v for k, v in given.items()}


def recipes() -> list[str]:
    """The names of all recipes."""
    return sorted(_RECIPES)


def recipe(name: str) -> type[PositionIds]:
    """The class behind a name."""
    must_be("the name of a recipe for positions", name, str)
    if name not in _RECIPES:
        raise unknown("recipe for positions", name, _RECIPES)
    return _RECIPES[name]


def position_ids(given: Any) -> PositionIds:
    """A recipe from itself, from a name or text such as `randomized(2048)`, or from its plain data."""
    if isinstance(given, PositionIds):
        return given
    if isinstance(given, str):
        name, values, options = call(given, "recipe for positions")
        cls = recipe(name)
        known = list(_options(cls))
        if len(values) > len(known):
            raise BadValue(f"{given!r} gives {len(values)} values, but {name} takes {', '.join(known) or 'none'}")
        return _make(cls, {**dict(zip(known, values, strict=False)), **options})
    if isinstance(given, Mapping) and "name" in given:
        return _make(recipe(given["name"]), {k: v for k, v in given.items() if k != "name"})
    raise wrong("positions", given, "a recipe for position ids", f"its name, one of {', '.join(recipes())}, for one")


def _make(cls: type[PositionIds], options: Mapping[str, Any]) -> PositionIds:
    known = _options(cls)
    for option in options:
        if option not in known:
            raise unknown(f"option of {cls.name}", option, known)
    needed = [f.name for f in fields(cls) if f.default is MISSING and f.name not in options]
    if needed:
        raise BadValue(f"{cls.name} needs {', '.join(needed)}: {cls.name}({', '.join(f'{n}=...' for n in needed)})")
    return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in options.items()})


# -------------------------------------------------------------------- what recipes share


@dataclass(frozen=True, eq=False)
class Documents:
    """The documents of a batch, for each token: which of its row's it is in, how many tokens that has, and which of
    them it is (0-based), (B, T) each; and how many documents a row has at most."""

    index: Int
    count: Int
    rank: Int
    most: int


def documents(at: Layout) -> Documents:
    """The documents of a layout; padding counts as its row's first one and has no say in it."""
    real = at.real
    if at.doc is None or at.kind == "padded":
        index, most = torch.zeros_like(at.step), 1
    else:
        index = at.doc.clamp(min=0)
        most = int(index.max()) + 1 if index.numel() else 1
    order = real.cumsum(1) - 1
    count = order.new_zeros(len(order), most).scatter_add(1, index, real.to(order.dtype))
    late = order.shape[1]
    first = order.new_full((len(order), most), late).scatter_reduce(1, index, order.where(real, late), "amin")
    rank = (order - first.gather(1, index)).clamp(min=0)
    return Documents(index, count.gather(1, index), rank, most)


def draw(*shape: int, device: torch.device) -> Float:
    """Numbers from 0 to 1 from torch's own stream on the CPU, the same on every device."""
    return (
        torch.rand(*shape, dtype=torch.float64).to(torch.float32 if device.type == "mps" else torch.float64).to(device)
    )


def move(at: Layout, pos: Int, length: Int | None = None) -> Layout:
    """The same tokens at other positions (B, T); length: by default the largest of each document + 1."""
    if length is None:
        index = documents(at).index
        most = int(index.max()) + 1 if index.numel() else 1
        top = pos.new_zeros(len(pos), most).scatter_reduce(1, index, pos.where(at.real, 0), "amax") + 1
        length = top.gather(1, index)
    return replace(at, pos=pos, length=length, kind="placed" if at.kind == "dense" else at.kind)


__all__ = [
    "Documents",
    "PositionIds",
    "documents",
    "draw",
    "move",
    "position_ids",
    "recipe",
    "recipes",
]
