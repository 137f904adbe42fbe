"""Keys: a config.json that remembers what was read of it.

A key that nobody read is an error, unless `harmless.py` says why it changes nothing. So a checkpoint of tomorrow fails
with the key's name instead of writing fluent nonsense. A key that is null says nothing only where a family has no
other default for it: a null activation is no activation.
"""

from collections.abc import Collection, Mapping
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from gnomon.checkpoints.hf.harmless import HARMLESS
from gnomon.errors import BadInput, unknown
from gnomon.models.model_settings import Pooling

T = TypeVar("T")
_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
_NEEDED: Any = object()
SEQUENCE: Any = list
MOST, LAYERS = 2**40, 10_000  # beyond these a number is a mistake
SHOWN = 80  # letters of a value in an error


class Keys:
    """The keys of one config.json, or of an object inside it."""

    def __init__(
        self, data: Mapping[str, Any], file: Path, names: Collection[str] = (), pooling: Pooling | None = None
    ) -> None:
        """data: the object. file: named in errors. Where a config does not say all: names of the weights beside it, and
        pooling, which sentence-transformers keeps in a file of its own."""
        self.data, self.file, self.names, self.pooling = data, file, names, pooling
        self._read: set[str] = set()

    def has(self, key: str) -> bool:
        """Whether the key is there and says something."""
        return self.data.get(key) is not None

    def get(self, key: str, kind: type[T], default: Any = _NEEDED) -> T:
        """The value of a key, of this type; where it is absent the default, or BadInput without one.

        null is the default where that is None or False, and otherwise BadInput: to the library that wrote the file it
        is another value than the default.
        """
        self._read.add(key)
        value = self.data.get(key)
        if value is None:
            if default is _NEEDED:
                raise BadInput(f"{self.file} has no {key!r}, which a model of this family needs")
            if key in self.data and default is not None and default is not False:
                raise BadInput(f"{self.file}: {key} is null; leave it out for {default!r}, or give {_kind(kind)}")
            return default
        if kind is float and type(value) is int and abs(value) < MOST:
            value = float(value)
        if type(value) is not kind or (isinstance(value, float) and not isfinite(value)):
            raise BadInput(f"{self.file}: {key} must be {_kind(kind)}, got {_shown(value)}")
        return value

    def size(self, *spellings: str, default: Any = _NEEDED, most: int = MOST) -> int:
        """A size, from 1 to `most`, under any of its spellings; BadInput where two of them disagree."""
        value = self.first(spellings, int, default)
        if value is not None and not 1 <= value <= most:
            raise BadInput(f"{self.file}: {spellings[0]} must be between 1 and {most}, got {value}")
        return value

    def per_layer(self, key: str, n_layers: int, default: Any = _NEEDED) -> list[Any]:
        """A list with an entry for each layer; some files have entries for layers that are not there."""
        value: list[Any] = self.get(key, SEQUENCE) if default is _NEEDED else self.get(key, SEQUENCE, None) or default
        if len(value) < n_layers:
            raise BadInput(f"{self.file}: {key} has {len(value)} entries for {n_layers} layers")
        return value[:n_layers]

    def first(self, keys: tuple[str, ...], kind: type[T], default: Any = _NEEDED) -> T:
        """The value of a setting that has several spellings; BadInput where two of them disagree."""
        self._read.update(keys)
        here = [key for key in keys if self.has(key)]
        return self.agreed({key: self.get(key, kind) for key in here} or {keys[0]: self.get(keys[0], kind, default)})

    def agreed(self, values: Mapping[str, T]) -> T:
        """The one value of a setting that is said in several places, by where; BadInput where they disagree."""
        (where, value), *others = values.items()
        for other, differs in others:
            if differs != value:
                raise BadInput(
                    f"{self.file}: {where} and {other} say different things, {_shown(value)} and {_shown(differs)}: "
                    "take out the wrong one"
                )
        return value

    def word(self, key: str, words: Mapping[str, T], default: str) -> T:
        """What the word under a key stands for; BadInput lists the known words."""
        word = self.get(key, str, default)
        if word not in words:
            raise BadInput(f"{self.file}: {unknown(key, word[:SHOWN], words)}")
        return words[word]

    def must(self, key: str, *values: Any) -> None:
        """BadInput unless the key is absent or one of these values: others would compute something else. null counts as
        false, and as absent where no value is given."""
        self._read.add(key)
        value = self.data.get(key)
        if key not in self.data or value in values or (value is None and (not values or False in values)):
            return
        expected = f"only with {' or '.join(map(repr, values))}" if values else "only without it"
        raise BadInput(f"{self.file}: {key} is {_shown(value)}; Gnomon reads this family {expected}")

    def part(self, key: str) -> "Keys | None":
        """The object under a key, as Keys of its own."""
        data: dict[str, Any] | None = self.get(key, dict, None)
        return None if data is None else Keys(data, self.file, self.names)

    def finish(self, *within: str) -> None:
        """BadInput if a key was left unread that is not known to be harmless.

        within   where these keys are: the family's name, then the object inside its config
        """
        prefixes = ["".join(f"{name}." for name in within[:n]) for n in range(len(within) + 1)]
        left = sorted(
            key
            for key in self.data.keys() - self._read
            if self.data[key] is not None and not (within and any(f"{prefix}{key}" in HARMLESS for prefix in prefixes))
        )
        if left:
            shown = ", ".join(f"{key} = {_shown(self.data[key])}" for key in left)
            raise BadInput(
                f"{self.file} holds settings that Gnomon does not know and cannot leave out: {shown}. Take out of the "
                "file what changes nothing"
            )


def _kind(kind: type) -> str:
    return _KINDS.get(kind, kind.__name__)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


__all__ = ["LAYERS", "SEQUENCE", "Keys"]
