"""One glossary in three languages: every text is there three times, with the same fields (S27)."""

import string

import pytest

from gnomon.cli.options import lang_option
from gnomon.errors import BadValue
from gnomon.glossary import LANGUAGES, glossary, grouped, words

TEXTS = [(group, key, texts) for group, keys in glossary().items() for key, texts in keys.items()]


@pytest.mark.parametrize(("group", "key", "texts"), TEXTS, ids=[f"{group}.{key}" for group, key, _ in TEXTS])
def test_a_text_is_there_in_every_language_with_the_same_fields(group, key, texts):
    assert list(texts) == list(LANGUAGES)
    assert all(text.strip() == text and text for text in texts.values())
    fields = {lang: sorted(name for _, name, _, _ in string.Formatter().parse(t) if name) for lang, t in texts.items()}
    assert len({tuple(names) for names in fields.values()}) == 1, fields


def test_commands_offer_the_languages_that_the_glossary_has():
    @lang_option
    def command():
        pass

    (option,) = command.__click_params__
    assert list(option.type.choices) == list(LANGUAGES)


def test_fields_are_filled_in():
    assert words("plots", "es")("head", number=3) == "cabeza 3"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: words("plots", "ent"), "unknown language 'ent': did you mean 'en'"),
        (lambda: words("plot"), "unknown group of the glossary 'plot': did you mean 'plots'"),
        (lambda: words("plots")("valeu"), "unknown text of the glossary's plots 'valeu': did you mean 'value'"),
    ],
)
def test_a_word_that_is_not_there_names_the_nearest(call, message):
    with pytest.raises(BadValue, match=message):
        call()


def test_digits_are_grouped_alike_in_every_language():
    assert grouped(124_439_808).split("\u202f") == ["124", "439", "808"]
    assert grouped(64) == "64"
