"""Kinds: whether a value is of an annotated kind, what a kind is in words, and what an annotation says of a setting.

    softcap: Annotated[float | None, Setting("c of c tanh(s / c) ...", above=0, source="arXiv:2408.00118")] = None

is the whole statement of a setting: its type, its range, its meaning and where it comes from.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

WORDS: Mapping[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    Path: "a path",
    NoneType: "none",
    None: "none",
}

LIST = "a list of these"


@dataclass(frozen=True)
class Setting:
    """What an annotation says of a setting besides its type.

    meaning       one line
    least, most   the range of its numbers, bounds included; above, below: bounds left out. They are finite in any case
    source        the paper, where it is a published method
    """

    meaning: str
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    source: str = ""

    def holds(self, value: object) -> bool:
        """Whether a value, and each item of a list, is in the range; what is no number is."""
        if isinstance(value, list | tuple):
            return all(map(self.holds, value))
        if isinstance(value, bool) or not isinstance(value, int | float):
            return True
        if isinstance(value, float) and not isfinite(value):
            return False
        low = (self.least is None or value >= self.least) and (self.above is None or value > self.above)
        return low and (self.most is None or value <= self.most) and (self.below is None or value < self.below)

    def range(self, say: Callable[[str], str] = str) -> str:
        """The range in words, such as "between 1 and 10"; "" where there is none. say: translates each phrase."""
        if self.least is not None and self.most is not None:
            return say("between {least} and {most}").format(least=f"{self.least:g}", most=_size(self.most))
        bounds = {"at least": self.least, "above": self.above, "at most": self.most, "below": self.below}
        words = [say(f"{word} {{bound}}").format(bound=f"{x:g}") for word, x in bounds.items() if x is not None]
        return f" {say('and')} ".join(words)


def _size(n: float) -> str:
    """A bound as one reads it: 2**20 for 1048576."""
    power = int(n).bit_length() - 1
    return f"2**{power}" if power > 12 and n == 2**power else f"{n:g}"


def options(kind: Any) -> tuple[Any, ...]:
    """The members of a union, or the kind itself; an annotation's type where it says more."""
    if get_origin(kind) is Annotated:
        return options(get_args(kind)[0])
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def setting(kind: Any) -> Setting | None:
    """What an annotation says of a setting, if it does."""
    extras = get_args(kind)[1:] if get_origin(kind) is Annotated else ()
    return next((extra for extra in extras if isinstance(extra, Setting)), None)


def fits(value: object, kind: Any) -> bool:
    """Whether a value is of an annotated kind. A whole number is a number, true and false are none; a list is as good
    as a tuple, which JSON does not have. Of iterables other than lists and mappings the items are not looked at.

    >>> fits(3, float), fits(True, int), fits(["a", 1], tuple[str, ...])
    (True, False, False)
    """
    if type(value) is kind:  # the usual answer to what is asked once a layer and a step
        return True
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in (Any, object):
        return True
    if origin is Annotated:
        said = setting(kind)
        return fits(value, arguments[0]) and (said is None or said.holds(value))
    if origin in (Union, UnionType):
        return any(fits(value, member) for member in arguments)
    if origin is Literal:
        return any(type(value) is type(choice) and value == choice for choice in arguments)
    if kind is None:
        return value is None
    if kind in (int, float):
        return _is_number(value, kind)
    if origin in (list, tuple):
        return isinstance(value, list | tuple) and _items_fit(value, origin, arguments)
    if origin is Sequence and isinstance(value, list | tuple | str):
        return _items_fit(value, origin, arguments)
    if isinstance(value, Mapping) and isinstance(origin, type) and issubclass(origin, Mapping):
        return all(fits(key, arguments[0]) and fits(item, arguments[1]) for key, item in value.items())
    return _is_a(value, origin or kind)


def _is_number(value: object, kind: Any) -> bool:
    if isinstance(value, bool):  # an int to Python, not to us
        return False
    if isinstance(value, int):
        return kind is int or abs(value) < 2**1023  # a float can hold it
    return kind is float and isinstance(value, float)


def _is_a(value: object, kind: Any) -> bool:
    try:
        return not isinstance(kind, type) or isinstance(value, kind)
    except TypeError:  # a protocol that cannot be asked at run time
        return True


def _items_fit(items: Sequence[object], origin: Any, kinds: tuple[Any, ...]) -> bool:
    if origin is not tuple or kinds[-1] is ...:
        return all(fits(item, kinds[0]) for item in items)
    return len(items) == len(kinds) and all(fits(item, kind) for item, kind in zip(items, kinds, strict=True))


def in_words(kind: Any, within: str = "", say: Callable[[str], str] = str) -> str:
    """A kind in words. within: the range of its numbers; say: translates each phrase.

    >>> in_words(int | None), in_words(Annotated[float, Setting("a share", least=0, below=1)])
    ('a whole number or none', 'a number at least 0 and below 1')
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        said = setting(kind)
        return in_words(arguments[0], within if said is None else said.range(say), say)
    if origin in (Union, UnionType):
        members = (LIST if _lists_the_others(x, arguments) else x for x in arguments)
        return f" {say('or')} ".join(say(x) if x is LIST else in_words(x, within, say) for x in members)
    if origin is Literal:
        return f" {say('or')} ".join(repr(choice) for choice in arguments)
    if origin in (list, tuple, Sequence):
        return say("a list, each of it {item}").format(item=in_words(arguments[0], within, say))
    if kind in (int, float):
        return f"{say(WORDS[kind])} {within}".rstrip()
    return say(WORDS.get(kind) or article(getattr(origin or kind, "__name__", str(kind))))


def _lists_the_others(member: Any, members: tuple[Any, ...]) -> bool:
    """Whether this member of a union is a list whose items are what else the union has."""
    others = {*members} - {member}
    return get_origin(member) in (list, tuple, Sequence) and set(options(get_args(member)[0])) == others


def article(noun: str) -> str:
    """A noun after "a" or "an"."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


__all__ = ["Setting", "article", "fits", "in_words", "options", "setting"]
