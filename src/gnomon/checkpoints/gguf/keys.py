"""Keys: what a GGUF file says about its architecture, with a memory of what was asked.

A key under the architecture's name that nobody asked for may change what the model computes, so at the end it is an
error that lists it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from gnomon.errors import BadInput

T = TypeVar("T", int, float, bool, str)
_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
_NEEDED: Any = object()
START = "decoder_start_token_id"  # the id before the first that a decoder writes


class Keys:
    """The keys `ARCH.*` of a file's metadata."""

    def __init__(self, metadata: Mapping[str, Any], arch: str, path: Path) -> None:
        """arch: the architecture's name; path: named in errors."""
        self.arch, self.path = arch, path
        self._own = {key[len(arch) + 1 :]: value for key, value in metadata.items() if key.startswith(f"{arch}.")}
        self._asked: set[str] = set()
        self.tensors: Mapping[str, tuple[int, ...]] = {}  #: shapes of the file's tensors, where a key does not say all

    def get(self, key: str, kind: type[T], default: T | None = _NEEDED) -> T:
        """The value of `ARCH.key`, of this type. A list with one value a layer must repeat it: that is the value."""
        self._asked.add(key)
        value = self._own.get(key)
        if value is None:
            if default is _NEEDED:
                raise BadInput(f"{self.path} has no key {self.arch}.{key}, which a model of this family needs")
            return default  # type: ignore[return-value]
        if isinstance(value, list) and value and all(each == value[0] for each in value):
            value = value[0]
        if kind is float and type(value) in (int, float):
            return shortest(value)  # type: ignore[return-value]
        if type(value) is not kind:
            raise BadInput(f"{self.path}: {self.arch}.{key} must be {_WORDS[kind]}, got {str(value)[:80]}")
        return value

    def list(self, key: str) -> list[Any]:
        """The value of `ARCH.key` where it is a list; [] where it is absent or something else."""
        value = self._own.get(key)
        if isinstance(value, list):
            self._asked.add(key)
            return value
        return []

    def must(self, key: str, *values: Any) -> None:
        """BadInput unless the key is absent or one of these values: another would compute something else."""
        self._asked.add(key)
        if (value := self._own.get(key)) is not None and value not in values:
            expected = " or ".join(map(repr, values))
            raise BadInput(f"{self.path}: {self.arch}.{key} is {value!r}; this family is read only with {expected}")

    def finish(self) -> None:
        """BadInput if there is a key that nobody asked for."""
        if unread := sorted(self._own.keys() - self._asked):
            raise BadInput(
                f"{self.path} has keys of {self.arch} that Gnomon does not know, and which may change what the model "
                f"computes: {', '.join(f'{self.arch}.{key}' for key in unread)}"
            )


def shortest(value: float) -> float:
    """The shortest decimal number that float32, in which the file has it, cannot tell from this one: 1e-5 was
    written, 9.999999747e-06 is stored."""
    return float(str(np.float32(value)))


__all__ = ["START", "Keys", "shortest"]
