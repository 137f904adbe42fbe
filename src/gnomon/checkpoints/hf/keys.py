"""Keys: a config.json that remembers what was read of it.

A key that nobody read is an error if its name could mean a different computation (anything about positions, masks,
windows, norms, biases, scales, ties). So a checkpoint of tomorrow fails with the key's name instead of writing
fluent nonsense. A key that is absent, null or false says the same: not used.
"""

import re
from collections.abc import Collection, Mapping
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from gnomon.errors import BadInput, unknown
from gnomon.models.config import Pooling

T = TypeVar("T")
_MATTERS = re.compile(
    "position|rope|rotary|alibi|bias|mask|window|scal|softcap|cap$|tie_|norm|eps|attn|attention|layer_type|residual"
    "|sparse|expert|quant|sink|multiplier|num_kv|n_kv|chunk|nope"
)
#: keys that the library writes into any config, which say how to generate, train or report, not what is computed
_HARMLESS = frozenset(
    [
        "attn_implementation",
        "_attn_implementation",
        "_attn_implementation_autoset",
        "output_attentions",
        "mask_token_id",
        "tie_encoder_decoder",
        "length_penalty",
        "repetition_penalty",
        "diversity_penalty",
        "encoder_no_repeat_ngram_size",
        "chunk_size_feed_forward",
    ]
)
_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
_NEEDED: Any = object()
SEQUENCE: Any = list
MOST, LAYERS = 2**40, 10_000  # beyond these a number is a mistake


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
        """The value of a key, of this type; where it is absent or null the default, or BadInput without one."""
        self._read.add(key)
        value = self.data.get(key)
        if value is None:
            if default is _NEEDED:
                raise BadInput(f"{self.file} has no {key!r}, which a model of this family needs")
            return default  # type: ignore[no-any-return]
        if kind is float and type(value) is int and abs(value) < MOST:
            value = float(value)
        if type(value) is not kind or (isinstance(value, float) and not isfinite(value)):
            raise BadInput(f"{self.file}: {key} must be {_KINDS.get(kind, kind.__name__)}, got {value!r}")
        return value

    def size(self, *spellings: str, default: Any = _NEEDED, most: int = MOST) -> int:
        """A size, from 1 to `most`, under the first of its spellings that is there."""
        key = next((key for key in spellings if self.has(key)), spellings[0])
        self._read.update(spellings)
        value = self.get(key, int, default)
        if value is not None and not 1 <= value <= most:
            raise BadInput(f"{self.file}: {key} must be between 1 and {most}, got {value}")
        return value

    def per_layer(self, key: str, n_layers: int, default: Any = _NEEDED) -> list[Any]:
        """A list with an entry for each layer; some files have entries for layers that are not there."""
        value: list[Any] = self.get(key, SEQUENCE, default)
        if len(value) < n_layers:
            raise BadInput(f"{self.file}: {key} has {len(value)} entries for {n_layers} layers")
        return value[:n_layers]

    def first(self, keys: tuple[str, ...], kind: type[T], default: Any = _NEEDED) -> T:
        """The value of the first of several spellings that is there."""
        self._read.update(keys)
        return self.get(next((key for key in keys if self.has(key)), keys[0]), kind, default)

    def word(self, key: str, words: Mapping[str, T], default: str) -> T:
        """What the word under a key stands for; BadInput lists the known words."""
        word = self.get(key, str, default)
        if word not in words:
            raise BadInput(f"{self.file}: {unknown(key, word, words)}")
        return words[word]

    def must(self, key: str, *values: Any) -> None:
        """BadInput unless the key is absent, null, or one of these values: others would compute something else."""
        self._read.add(key)
        value = self.data.get(key)
        if value is not None and value not in values:
            raise BadInput(
                f"{self.file}: {key} is {value!r}; Gnomon reads this family only with {' or '.join(map(repr, values))}"
            )

    def part(self, key: str) -> "Keys | None":
        """The object under a key, as Keys of its own."""
        data: dict[str, Any] | None = self.get(key, dict, None)
        return None if data is None else Keys(data, self.file, self.names)

    def ignore(self, *keys: str) -> None:
        """Keys that are known to change nothing."""
        self._read.update(keys)

    def finish(self, every: bool = False) -> None:
        """BadInput if a key was left unread that could matter; with `every`, if any was."""
        left = [
            key
            for key, value in self.data.items()
            if key not in self._read and value is not None and value is not False
        ]
        matter = sorted(key for key in left if every or (key not in _HARMLESS and _MATTERS.search(key)))
        if matter:
            shown = ", ".join(f"{key} = {self.data[key]!r}"[:80] for key in matter)
            raise BadInput(f"{self.file} holds settings that Gnomon does not know and cannot leave out: {shown}")


__all__ = ["LAYERS", "SEQUENCE", "Keys"]
