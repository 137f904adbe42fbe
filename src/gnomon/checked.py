"""Whether plain data fit the annotations of a dataclass: for settings that come out of files and from callers."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from gnomon.errors import BadValue, unknown

WORDS: Mapping[Any, str] = {
    bool: "true or false", int: "a whole number", float: "a number", str: "text", Path: "a path", NoneType: "none",
}  # fmt: skip


def annotations_of(kind: type[Any]) -> dict[str, Any]:
    """The fields that a dataclass is made with, and the types they are of."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind) if field.init}


def check_fields(kind: type[Any], values: Mapping[str, object]) -> None:
    """Raise BadValue for a value that does not fit the field of its name, and for a name that no field has."""
    hints = annotations_of(kind)
    for name, value in values.items():
        if name not in hints:
            raise unknown("setting", name, hints)
        if not fits(value, hints[name]):
            raise BadValue(f"{name} must be {described(hints[name])}, got {value!r}")


def fits(value: object, annotation: Any) -> bool:
    """Whether a value is of an annotated type. A whole number is a number, true and false are none; a list is as good
    as a tuple, which JSON does not have.

    >>> fits(3, float), fits(True, int), fits(["a", 1], tuple[str, ...])
    (True, False, False)
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in (Any, object):
        return True
    if origin in (Union, UnionType):
        return any(fits(value, member) for member in arguments)
    if origin is Literal:
        return any(type(value) is type(choice) and value == choice for choice in arguments)
    if origin in (list, tuple):
        return isinstance(value, list | tuple) and _items_fit(value, origin, arguments)
    if origin is not None and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            fits(key, arguments[0]) and fits(item, arguments[1]) for key, item in value.items()
        )
    if annotation is float and type(value) is int:
        return abs(value) < 2**1023  # a float can hold it
    return isinstance(value, annotation) and (annotation is bool or not isinstance(value, bool))


def _items_fit(items: list[object] | tuple[object, ...], origin: Any, kinds: tuple[Any, ...]) -> bool:
    if origin is list or kinds[-1] is ...:
        return all(fits(item, kinds[0]) for item in items)
    return len(items) == len(kinds) and all(fits(item, kind) for item, kind in zip(items, kinds, strict=True))


def described(annotation: Any) -> str:
    """A type in words.

    >>> described(int | None)
    'a whole number or none'
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return " or ".join(described(member) for member in arguments)
    if origin is Literal:
        return "one of " + ", ".join(str(choice) for choice in arguments)
    if origin in (list, tuple):
        return f"a list, each of it {described(arguments[0])}"
    return WORDS.get(annotation, str(annotation))


__all__ = ["annotations_of", "check_fields", "described", "fits"]
