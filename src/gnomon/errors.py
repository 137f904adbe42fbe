"""The two kinds of error a user meets, and how their messages are built.

Every message says what was given, what was expected and what to do about it.
"""

import inspect
import re
import reprlib
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache, wraps
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from gnomon.kinds import article, fits, in_words, options, setting

F = TypeVar("F", bound=Callable[..., Any])
V = TypeVar("V")


class GnomonError(Exception):
    """Base of every error that Gnomon raises on purpose; what its message quotes is cut where it is very long."""

    def __init__(self, message: object = "") -> None:
        super().__init__(shorten(str(message)))


class BadValue(GnomonError, ValueError):
    """An argument, option or name that cannot be right (the command line exits with 2)."""


class BadInput(GnomonError):
    """A file, folder, corpus or checkpoint that cannot be used (the command line exits with 3)."""


class Terminated(KeyboardInterrupt):
    """A signal asked a training to end, and it has saved; Ctrl-C raises the base.

    The command line exits with 128 and the signal's number, as a shell would: 143 for SIGTERM.
    """

    def __init__(self, number: int = signal.SIGTERM) -> None:
        super().__init__()
        self.signal = signal.Signals(number)


def unknown(kind: str, given: str, known: Iterable[str], also: Mapping[str, str] | None = None) -> BadValue:
    """Build the error for a name that is not known: it quotes the name and lists the known ones, the nearest first.

    also  other words that people say for known ones: word -> name

    >>> print(unknown("position encoding", "rop", ["alibi", "rope"]))
    unknown position encoding 'rop': did you mean 'rope'? Known: alibi, rope
    >>> print(unknown("position encoding", "xyz", ["alibi", "rope"]))
    unknown position encoding 'xyz'. Known: alibi, rope
    """
    names = sorted(known)
    meant = {word.casefold(): name for word, name in (also or {}).items() if name in names}
    meant |= {name.casefold(): name for name in names}
    near = get_close_matches(str(given).casefold(), meant, n=1, cutoff=0.5)
    hint = f": did you mean {meant[near[0]]!r}?" if near else "."
    return BadValue(f"unknown {kind} {short_repr(given)}{hint} Known: {', '.join(names) or 'none'}")


class Named(dict[str, V]):
    """Things by name. Asking for a name that it does not hold is an error that names the nearest.

    >>> Named("fruit", {"apple": 1})["aple"]
    Traceback (most recent call last):
    gnomon.errors.BadValue: unknown fruit 'aple': did you mean 'apple'? Known: apple
    """

    def __init__(self, kind: str, items: Mapping[str, V]) -> None:
        super().__init__(items)
        self.kind = kind

    def __missing__(self, name: str) -> V:
        raise unknown(self.kind, name, self)


def wrong(name: str, given: object, expected: str, how: str = "") -> BadValue:
    """Build the error for a value of the wrong kind: what was given, what is expected and how to make it.

    >>> print(wrong("at", [[1, 0]], "a Layout", "for a mask of real tokens: gn.Layout.padded(mask)"))
    at must be a Layout, got a list of 1 list: [[1, 0]]; for a mask of real tokens: gn.Layout.padded(mask)
    """
    return BadValue(f"{name} must be {expected}, got {describe_value(given)}" + (f"; {how}" if how else ""))


def must_be(name: str, value: object, kind: Any, how: str = "") -> None:
    """Raise BadValue unless a value is of the annotated kind, as `gnomon.kinds.fits` has it.

    how: one more clause, on how to make one; default what the annotation says of the setting.
    """
    if fits(value, kind):
        return
    members, said = options(kind), setting(kind)
    words = [choice for member in members if get_origin(member) is Literal for choice in get_args(member)]
    if words and isinstance(value, str) and all(get_origin(m) is Literal or m in (None, NoneType) for m in members):
        raise unknown(name, value, [word for word in words if isinstance(word, str)])
    meaning = "" if said is None else f"{name}: {said.meaning}"
    raise wrong(name, value, in_words(kind), how or meaning or _explain(members))


def _explain(kinds: Iterable[Any]) -> str:
    """What a protocol among these is, by the first line of its docstring: its name does not say how to make one."""
    lines = [inspect.getdoc(kind) for kind in kinds if getattr(kind, "_is_protocol", False)]
    return "; ".join(line.partition("\n")[0].rstrip(".") for line in lines if line)


def check_arguments(function: F) -> F:
    """Check the arguments of each call against their annotations with `must_be`. Of a class: those of its constructor.

    For constructors and calls that are not made once a layer: it reads the signature at every call.
    """
    if isinstance(function, type):
        function.__init__ = check_arguments(function.__init__)  # type: ignore[misc]
        return function

    @cache
    def kinds() -> tuple[inspect.Signature, dict[str, Any]]:
        return inspect.signature(function), get_type_hints(function)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        signature, hints = kinds()
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError:
            return function(*args, **kwargs)  # Python says itself which argument there is not
        for name, value in given.items():
            plain = signature.parameters[name].kind is not inspect.Parameter.VAR_KEYWORD
            if name in hints and plain and not (isinstance(value, str) and _is_word(hints[name])):
                must_be(name, value, hints[name])
        return function(*args, **kwargs)

    return call  # type: ignore[return-value]


def each_text(name: str, texts: Iterable[str]) -> Iterator[str]:
    """The texts of a list one by one; BadValue for one text, whose letters would be taken for texts, and for others."""
    must_be(name, texts, Iterable, "a list of texts")
    if isinstance(texts, str | bytes | Mapping):
        raise wrong(name, texts, "a list of texts", "for one text give a list of one")
    return _each_text(name, texts)


def _each_text(name: str, texts: Iterable[str]) -> Iterator[str]:
    try:
        iterator = iter(texts)
    except TypeError as error:  # a tensor of no axes
        raise wrong(name, texts, "a list of texts") from error
    for i, text in enumerate(iterator):
        must_be(f"text {i + 1} of {name}", text, str)
        yield text


def _is_word(kind: Any) -> bool:
    """Whether a kind has words of its own: which they are the function says, it may know other words for them."""
    return any(get_origin(option) is Literal for option in options(kind))


def describe_value(value: object) -> str:
    """A value in a few words: its kind, its shape if it has one, and what it holds where that is short."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return short_repr(value)
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    kind = type(value).__name__
    if isinstance(value, type):
        return f"the class {value.__name__}: an object of it has to be made first"
    if isinstance(shape, tuple) and dtype is not None:
        home = type(value).__module__.partition(".")[0]
        return f"a {home} {'tensor' if kind == 'Tensor' else kind} of {dtype}, shape {tuple(shape)}"
    if isinstance(value, list | tuple | set | frozenset | dict):
        kinds = sorted({type(item).__name__ for item in value})
        return f"{article(kind)} of {len(value)} {' and '.join(kinds)}".rstrip() + f": {short_repr(value)}"
    return f"{article(kind)} {short_repr(value)}" if callable(value) else article(kind)


def shorten(message: str) -> str:
    """A message in which words, quotations and the whole are cut in the middle where a reader would lose the thread.

    >>> len(shorten("got " + "9" * 5000 + " steps"))
    155
    """
    message = _QUOTED.sub(lambda found: _cut(found.group(), 60), message)
    message = _WORD.sub(lambda found: _cut(found.group(), 60), message)
    return _cut(message, 2000)


_QUOTED, _WORD = re.compile(r"'[^']{300,}'|\"[^\"]{300,}\""), re.compile(r"\S{300,}")


def _cut(text: str, ends: int) -> str:
    left_out = len(text) - 2 * ends
    return f"{text[:ends]} ... ({left_out} left out) ... {text[-ends:]}" if left_out > 100 else text


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80


def short_repr(value: object) -> str:
    """repr, cut in its middle where it is long: a message quotes, it does not repeat a whole file."""
    return _SHORT.repr(value)


__all__ = [
    "BadInput",
    "BadValue",
    "GnomonError",
    "Named",
    "Terminated",
    "article",
    "check_arguments",
    "describe_value",
    "each_text",
    "must_be",
    "short_repr",
    "shorten",
    "unknown",
    "wrong",
]
