"""One glossary in three languages: every text is there three times, with the same fields."""

import ast
import pickle
import re
from copy import deepcopy

import click
import pytest
from click.testing import CliRunner

from gnomon.cli.options import lang_option
from gnomon.embed import InputLayer
from gnomon.errors import BadValue
from gnomon.glossary import LANGUAGES, glossary, grouped, localize, message, numeral, translate, words
from gnomon.positions import get

FIELDS = re.compile(r"\{(\w+)[^}]*\}")


@pytest.mark.parametrize("group", glossary())
def test_each_text_of_a_group_is_there_in_every_language_with_the_same_fields(group):
    wrong = []
    for key, texts in glossary()[group].items():
        fields = {frozenset(FIELDS.findall(text)) for text in texts.values()}
        same = group == "phrases" or len(fields) == 1  # a phrase has no fields: its braces are its own
        if (
            list(texts) != list(LANGUAGES)
            or not same
            or not all(text.strip() == text and text for text in texts.values())
        ):
            wrong.append((key, texts))
    assert not wrong


def test_a_phrase_is_named_by_its_english():
    assert all(key == texts["en"] for key, texts in glossary()["phrases"].items())


def test_commands_offer_the_languages_that_the_glossary_has():
    @lang_option
    def command():
        pass

    (option,) = command.__click_params__
    assert list(option.type.choices) == list(LANGUAGES)


@pytest.mark.parametrize(
    ("locale", "lang"),
    [
        ({"LANG": "es_CL.UTF-8"}, "es"),
        ({"LANG": "es_CL.UTF-8", "LC_MESSAGES": "pt_BR.UTF-8"}, "pt"),
        ({"LANG": "es_CL.UTF-8", "LC_ALL": "C.UTF-8"}, "en"),
        ({"LANG": "es_CL.UTF-8", "LC_ALL": ""}, "es"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "es_CL.UTF-8", "GNOMON_LANG": "pt"}, "pt"),
        ({}, "en"),
    ],
)
def test_the_terminal_says_which_language_it_speaks(monkeypatch, locale, lang):
    for name in ("GNOMON_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in locale.items():
        monkeypatch.setenv(name, value)
    command = click.command()(lang_option(lambda lang: click.echo(lang)))
    assert CliRunner().invoke(command).output.strip() == lang
    assert CliRunner().invoke(command, ["--lang", "en"]).output.strip() == "en"


def test_fields_are_filled_in():
    assert words("plots", "es")("head", number=3) == "cabezal 3"


@pytest.mark.parametrize(
    ("x", "spec", "english", "spanish"),
    [
        (1234.5, ".2f", "1_234.50", "1_234,50"),
        (1024, "", "1_024", "1_024"),
        (-0.25, "+.3f", "-0.250", "-0,250"),
        (1.2e-7, ".1e", "1.2e-07", "1,2e-07"),
        (9999999, "", "9_999_999", "9_999_999"),
        (0.125, ".1%", "12.5 %", "12,5 %"),
        (0.45, ".0%", "45 %", "45 %"),
        (438512.0, ".4g", "438_500", "438_500"),
        (4.385e5, ".4g", "438_500", "438_500"),
        (1.2e-7, ".3g", "1.2e-07", "1,2e-07"),
        (float("inf"), "", "inf", "inf"),
    ],
)
def test_a_number_is_written_as_its_language_writes_numbers(x, spec, english, spanish):
    assert numeral(x, spec) == english.replace("_", "\u202f")
    assert numeral(x, spec, "es") == numeral(x, spec, "pt") == spanish.replace("_", "\u202f")


@pytest.mark.parametrize(
    ("count", "english", "spanish"),
    [
        (1, "in 1 document (1 of them", "en 1 documento (1 de"),
        (2, "in 2 documents (2 of them", "en 2 documentos (2 de"),
    ],
)
def test_a_noun_goes_with_its_number(count, english, spanish):
    fields = {"name": "t", "megabytes": 1.0, "documents": count, "held": count, "sha256": "0"}
    assert english in words("lab")("plan_text", **fields)
    assert spanish in words("lab", "es")("plan_text", **fields)


def test_what_is_no_number_keeps_its_points():
    assert localize("torch 2.13.0, sha256 12ab3.4, v1.5", "es") == "torch 2.13.0, sha256 12ab3.4, v1.5"


def test_numbers_in_a_text_are_those_of_its_language():
    assert words("order", "es")("largest", value=0.00124) == "la mayor: 1,2e-03"
    assert words("order", "en")("largest", value=0.00124) == "largest: 1.2e-03"


def test_what_the_library_said_in_english_can_be_said_in_the_others():
    inner = message("plots", "head", number=1234)
    outer = message("plots", "table_title", name=inner)
    assert outer == "Positional Encoding: head 1\u202f234"
    assert translate(outer, "es") == "Codificación Posicional: cabezal 1\u202f234"
    assert translate("their own words", "es") == "their own words"
    assert deepcopy(outer) == pickle.loads(pickle.dumps(outer)) == str(outer)


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


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("senoidal", "sinusoidal"),
        ("sinusoidales", "sinusoidal"),
        ("aprendido", "learned"),
        ("aprendida", "learned"),
        ("rotatorio", "rope"),
        ("rotatoria", "rope"),
        ("rotatório", "rope"),
        ("Rotary", "rope"),
        ("ninguna", "none"),
        ("nenhuma", "none"),
    ],
)
def test_an_encoding_called_as_a_lesson_calls_it_is_suggested_by_its_name(word, name):
    with pytest.raises(BadValue, match=f"unknown position encoding '{word}': did you mean '{name}'"):
        get(word)


@pytest.mark.parametrize(("word", "name"), [("concatenar", "concat"), ("sumar", "add"), ("somar", "add")])
def test_a_way_to_combine_called_as_a_lesson_calls_it_is_suggested_by_its_name(word, name):
    with pytest.raises(BadValue, match=f"unknown way to combine '{word}': did you mean '{name}'"):
        InputLayer(8, 8, combine=word)


def asked_for(package):
    """(file, group or None, key) of each text that the package asks the glossary for by a literal."""
    for file in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Name(id="message" | "in_words"), args=[ast.Constant(group), ast.Constant(key), *_]
                ):
                    yield file.name, group, key
                case ast.Call(
                    func=ast.Call(func=ast.Name(id="words"), args=[ast.Constant(group), *_]),
                    args=[ast.Constant(key), *_],
                ):
                    yield file.name, group, key
                case ast.Call(func=ast.Name(id="w"), args=[ast.Constant(str(key)), *_]):
                    yield file.name, None, key


def test_every_text_that_the_package_asks_for_is_there(root):
    asked = list(asked_for(root / "src" / "gnomon"))
    known = glossary()
    everywhere = {key for keys in known.values() for key in keys}
    missing = [(file, group, key) for file, group, key in asked if key not in (known[group] if group else everywhere)]
    assert not missing
    assert len(asked) > 200
