"""The two kinds of error a user meets, and how their messages are built.

Every message says what was given, what was expected and what to do about it.
"""

import reprlib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin


class GnomonError(Exception):
    """Base of every error that Gnomon raises on purpose."""


class BadValue(GnomonError, ValueError):
    """An argument, option or name that cannot be right (the command line exits with 2)."""


class BadInput(GnomonError):
    """A file, folder, corpus or checkpoint that cannot be used (the command line exits with 3)."""


class Terminated(KeyboardInterrupt):
    """A SIGTERM asked a training to end, and it has saved (the command line exits with 143); Ctrl-C raises the base."""


def unknown(kind: str, given: str, known: Iterable[str], also: Mapping[str, str] | None = None) -> BadValue:
    """Build the error for a name that is not known: it quotes the name and lists the known ones, the nearest first.

    also  other words that people say for known ones: word -> name

    >>> print(unknown("position encoding", "rop", ["alibi", "rope"]))
    unknown position encoding 'rop': did you mean 'rope'? Known: alibi, rope
    """
    names = sorted(known)
    meant = {word.casefold(): name for word, name in (also or {}).items() if name in names}
    meant |= {name.casefold(): name for name in names}
    near = get_close_matches(str(given).casefold(), meant, n=1, cutoff=0.5)
    hint = f" did you mean {meant[near[0]]!r}?" if near else ""
    return BadValue(f"unknown {kind} {shown(given)}:{hint} Known: {', '.join(names) or 'none'}")


def wrong(name: str, given: object, expected: str, how: str = "") -> BadValue:
    """Build the error for a value of the wrong kind: what was given, what is expected and how to make it.

    >>> print(wrong("at", [[1, 0]], "a Layout", "for a mask of real tokens: gn.Layout.padded(mask)"))
    at is a Layout, got a list of 1 list: [[1, 0]]; for a mask of real tokens: gn.Layout.padded(mask)
    """
    return BadValue(f"{name} is {expected}, got {described(given)}" + (f"; {how}" if how else ""))


def must_be(name: str, value: object, kind: Any, how: str = "") -> None:
    """Raise BadValue unless a value is of the annotated kind: a class, a Literal, None, or a union of these.

    A float may be given as a whole number; True and False are no numbers. how: one more clause, on how to make one.
    """
    options = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    if any(_is_of(value, option) for option in options):
        return
    literals = [choice for option in options if get_origin(option) is Literal for choice in get_args(option)]
    if literals and isinstance(value, str):
        raise unknown(name, value, [choice for choice in literals if isinstance(choice, str)])
    raise wrong(name, value, " or ".join(_in_words(option) for option in options), how)


def _is_of(value: object, kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return value.__hash__ is not None and value in get_args(kind)
    if kind is None or kind is NoneType:
        return value is None
    if kind in (int, float, bool):
        return type(value) is kind or (kind is float and type(value) is int)  # true is an int to Python, not to us
    return isinstance(value, get_origin(kind) or kind)


def _in_words(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(repr(choice) for choice in get_args(kind))
    words = {
        int: "a whole number", float: "a number", bool: "True or False", str: "a text", None: "None",
        NoneType: "None",
    }  # fmt: skip
    return words.get(kind) or article(getattr(get_origin(kind) or kind, "__name__", str(kind)))


def described(value: object) -> str:
    """A value in a few words: its kind, its shape if it has one, and what it holds where that is short."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return shown(value)
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    kind = type(value).__name__
    if isinstance(value, type):
        return f"the class {value.__name__}: an object of it has to be made first"
    if isinstance(shape, tuple) and dtype is not None:
        home = type(value).__module__.partition(".")[0]
        return f"a {home} {'tensor' if kind == 'Tensor' else kind} of {dtype}, shape {tuple(shape)}"
    if isinstance(value, list | tuple | set | frozenset | dict):
        kinds = sorted({type(item).__name__ for item in value})
        return f"{article(kind)} of {len(value)} {' and '.join(kinds)}".rstrip() + f": {shown(value)}"
    return f"{article(kind)} {shown(value)}" if callable(value) else article(kind)


def article(noun: str) -> str:
    """A noun after "a" or "an"."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80


def shown(value: object) -> str:
    """repr, cut in its middle where it is long: a message quotes, it does not repeat a whole file."""
    return _SHORT.repr(value)


__all__ = [
    "BadInput", "BadValue", "GnomonError", "Terminated", "article", "described", "must_be", "shown", "unknown", "wrong",
]  # fmt: skip
