"""The words of Gnomon in English, Spanish and Portuguese, kept in one file.

`glossary.json` holds them as group -> key -> language -> text; pictures, commands, documentation and explorer read it,
so that a thing has one name per language. Texts may hold `{name}` fields to be filled in: a number is written as its
language writes numbers, and `{n:row|rows}` is the noun that goes with it. The group "phrases" holds what other
files say in English, by that English itself: what an encoding is expected to do, the name of a law. A phrase that is
not there stays English.
"""

import json
import re
import string
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, Self, get_args

from gnomon.errors import unknown

Language = Literal["en", "es", "pt"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
SPACE = "\u202f"  #: between groups of three digits: narrow, and no line breaks there
LARGE = 1e15  #: from here on a number keeps its exponent
NUMERAL = re.compile(r"(?<![\w.])(\d+)(?:\.(\d+))?(?![\w.]*\.\d)")


@dataclass(frozen=True)
class Words:
    """The texts of one group in one language.

    >>> words("plots", "es")("value")
    'Valor'
    """

    group: str
    lang: Language

    def __call__(self, key: str, **fields: object) -> str:
        """The text of `key` with its fields filled in. Raises BadValue for a key that the group does not have."""
        return _FILL[self.lang].format(self._texts(key)[self.lang], **fields)

    def number(self, x: float, spec: str = "") -> str:
        """A number as this language writes it."""
        return numeral(x, spec, self.lang)

    def _texts(self, key: str) -> Mapping[str, str]:
        texts = glossary()[self.group]
        if key not in texts:
            raise unknown(f"text of the glossary's {self.group}", key, texts)
        return texts[key]


class Message(str):
    """A text in English that knows how it is said in the other languages: what a library function returns, and a
    command shows. `message("encodings", "none")` makes one; `translated` reads it."""

    group: str
    key: str
    fields: Mapping[str, object]

    @classmethod
    def of(cls, group: str, key: str, fields: Mapping[str, object]) -> Self:
        """The text of a key, in English."""
        made = cls(words(group)(key, **fields))
        made.group, made.key, made.fields = group, key, fields
        return made

    def __reduce__(self) -> Any:
        return str, (str(self),)


def message(group: str, key: str, **fields: object) -> Message:
    """The English text of a key, which `translated` can say in the other languages. A field may be one, too."""
    return Message.of(group, key, fields)


def translate(text: str, lang: str) -> str:
    """A text that `message` made, or one of the glossary's phrases, in another language; any other text as it is."""
    if not isinstance(text, Message):
        known = glossary()["phrases"].get(text)
        return text if known is None else known[words("phrases", lang).lang]
    fields = {name: translate(x, lang) if isinstance(x, str) else x for name, x in text.fields.items()}
    return words(text.group, lang)(text.key, **fields)


def words(group: str, lang: str = "en") -> Words:
    """The texts of a group in a language. Raises BadValue for an unknown group or language, naming the known ones."""
    if group not in glossary():
        raise unknown("group of the glossary", group, glossary())
    for known in LANGUAGES:
        if lang == known:
            return Words(group, known)
    raise unknown("language", lang, LANGUAGES)


@cache
def glossary() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """All of it: group -> key -> language -> text."""
    text = files("gnomon").joinpath("glossary.json").read_text(encoding="utf-8")
    return json.loads(text)


def synonyms() -> dict[str, str]:
    """What names that people type are called in the three languages: word -> name, for the errors that suggest one."""
    return {word: name for name, texts in glossary()["names"].items() for word in texts.values()}


def numeral(x: float, spec: str = "", lang: str = "en") -> str:
    """A number in digits: groups of three apart by a narrow space, and a decimal comma in Spanish and Portuguese.

    spec  how `format` writes it; a share in percent has a space before its sign, and large numbers have no exponent

    >>> numeral(1234.5, ".2f", "es"), numeral(438512.0, ".4g"), numeral(0.125, ".1%", "pt")
    ('1\u202f234,50', '438\u202f500', '12,5 %')
    """
    if spec.endswith("%"):
        return f"{numeral(100 * x, f'{spec[:-1]}f', lang)} %"
    text = format(x, spec)
    if "e+" in text and not spec.endswith("e") and abs(x) < LARGE:
        text = format(float(text), ".0f")
    return localize(text, lang)


def localize(text: str, lang: str) -> str:
    """The numbers of a text that Python wrote, as a language writes them: 1234.5 is 1\u202f234,5 in Spanish."""
    point = "." if lang == "en" else ","

    def rewritten(found: re.Match[str]) -> str:
        whole, decimals = found.groups()
        return f"{int(whole):,}".replace(",", SPACE).rjust(len(whole), "0") + (f"{point}{decimals}" if decimals else "")

    return NUMERAL.sub(rewritten, text)


def grouped(number: int) -> str:
    """A whole number with a narrow space between groups of three digits, which reads alike in every language.

    >>> grouped(124439808)
    '124\u202f439\u202f808'
    """
    return numeral(number)


class _Fill(string.Formatter):
    """Fills fields in; numbers as a language writes them."""

    def __init__(self, lang: Language) -> None:
        self.lang = lang

    def format_field(self, value: Any, format_spec: str) -> str:
        """One field: a number in the language's digits, anything else as Python writes it. `{n:document|documents}` is
        the noun for n of them."""
        if "|" in format_spec:
            singular, plural = format_spec.split("|")
            return singular if value in (1, "1") else plural
        if isinstance(value, int | float) and not isinstance(value, bool):
            return numeral(value, format_spec, self.lang)
        return format(value, format_spec)


_FILL = {lang: _Fill(lang) for lang in LANGUAGES}

__all__ = [
    "LANGUAGES",
    "Language",
    "Message",
    "Words",
    "glossary",
    "grouped",
    "localize",
    "message",
    "numeral",
    "synonyms",
    "translate",
    "words",
]
