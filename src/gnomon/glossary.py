"""The words of Gnomon in English, Spanish and Portuguese, kept in one file (S27).

`glossary.json` holds them as group -> key -> language -> text; pictures, commands, documentation and explorer read it,
so that a thing has one name per language everywhere. Texts may hold `{name}` fields to be filled in.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, get_args

from gnomon.errors import unknown

Language = Literal["en", "es", "pt"]
LANGUAGES: tuple[Language, ...] = get_args(Language)


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
        texts = glossary()[self.group]
        if key not in texts:
            raise unknown(f"text of the glossary's {self.group}", key, texts)
        return texts[key][self.lang].format(**fields)


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
    return json.loads(text)  # type: ignore[no-any-return]


def grouped(number: int) -> str:
    """A whole number with a thin space between groups of three digits, which reads alike in every language.

    >>> grouped(124439808)
    '124\u202f439\u202f808'
    """
    return f"{number:,}".replace(",", "\u202f")


__all__ = ["LANGUAGES", "Language", "Words", "glossary", "grouped", "words"]
