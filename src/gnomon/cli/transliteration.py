"""Letters that a terminal cannot write: the nearest one it can, so that 14 592 does not become 14?592 there."""

import codecs
import unicodedata
from collections.abc import Callable

#: what tables and sentences hold beside letters -> what stands for it in ASCII
NEAREST = {
    "\u202f": " ",
    "\u00a0": " ",
    "−": "-",
    "–": "-",
    "─": "-",
    "×": "x",
    "≈": "~",
    "…": "...",
    "“": '"',
    "”": '"',
    "«": '"',
    "»": '"',
    "¿": "",
    "¡": "",
}
OUT, ERR = "gnomon.nearest", "gnomon.nearest_or_escaped"  #: handlers for standard output and standard error


def nearest(error: UnicodeError) -> tuple[str, int]:
    """A handler of errors: the nearest letters, and a question mark where there is none."""
    return _replacement(error, lambda letter: "?")


def nearest_or_escaped(error: UnicodeError) -> tuple[str, int]:
    """A handler of errors: the nearest letters, and the letter's number where there is none."""
    return _replacement(error, lambda letter: letter.encode("ascii", "backslashreplace").decode())


def _replacement(error: UnicodeError, other: Callable[[str], str]) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    return "".join(_nearest_letter(letter, other) for letter in letters), error.end


def _nearest_letter(letter: str, other: Callable[[str], str]) -> str:
    """What stands for it; a Latin letter without its accent is near enough to be read."""
    if letter in NEAREST:
        return NEAREST[letter]
    first = unicodedata.normalize("NFD", letter)[0]
    return first if first.isascii() else other(letter)


codecs.register_error(OUT, nearest)
codecs.register_error(ERR, nearest_or_escaped)

__all__ = ["ERR", "NEAREST", "OUT", "nearest", "nearest_or_escaped"]
