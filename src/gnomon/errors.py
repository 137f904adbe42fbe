"""The two kinds of error a user meets, and how their messages are built.

Every message says what was given, what was expected and what to do about it.
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches


class GnomonError(Exception):
    """Base of every error that Gnomon raises on purpose."""


class BadValue(GnomonError, ValueError):
    """An argument, option or name that cannot be right (the command line exits with 2)."""


class BadInput(GnomonError):
    """A file, folder, corpus or checkpoint that cannot be used (the command line exits with 3)."""


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
    return BadValue(f"unknown {kind} {given!r}:{hint} Known: {', '.join(names) or 'none'}")


__all__ = ["BadInput", "BadValue", "GnomonError", "unknown"]
