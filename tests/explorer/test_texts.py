"""The page's texts: each is there in three languages, with the same fields, and in the words of the glossary."""

import json
import re

import pytest

from gnomon.glossary import LANGUAGES, glossary

FIELD = re.compile(r"\{(\w+)(?:\}|:[^|}]*\|[^}]*\})")
TAG = re.compile(r"<[^>]*>|\{[^{}]*\}")


def catalogues(root):
    return sorted((root / "explorer" / "src").rglob("*.json"))


def faults(texts):
    """Keys whose texts are not complete."""
    wrong = []
    for key, said in texts.items():
        fields = {frozenset(FIELD.findall(text)) for text in said.values()}
        if list(said) != list(LANGUAGES) or len(fields) != 1 or not all(t.strip() == t and t for t in said.values()):
            wrong.append(key)
    return wrong


def test_a_text_that_lacks_a_language_or_a_field_is_seen():
    whole = {"en": "{n} rows", "es": "{n} filas", "pt": "{n} linhas"}
    assert faults({"a": whole}) == []
    assert faults({"a": {**whole, "pt": ""}, "b": {**whole, "es": "filas"}, "c": {"en": "x"}}) == ["a", "b", "c"]


def test_every_text_is_there_in_every_language_with_the_same_fields(root):
    files = catalogues(root)
    assert files
    assert {file.parent.name: bad for file in files if (bad := faults(json.loads(file.read_text("utf-8"))))} == {}


#: terms whose translation has rivals in use: the page says what the glossary says
RIVALS = {
    "head": {"es": r"\bcabezas?\b", "pt": r"\bcabeçote"},
    "embedding": {"es": r"\bincrustaci", "pt": r"\bincorporaç"},
    "padding": {"es": r"\bpadding\b", "pt": r"\bpadding\b"},
    "training_length": {"es": r"largo de entrenamiento", "pt": r"tamanho de treino"},
    "decoder": {"es": r"\bdescodificador", "pt": r"\bdescodificador"},
}


@pytest.mark.parametrize("term", RIVALS)
def test_a_term_is_called_what_the_glossary_calls_it(root, term):
    assert term in glossary()["terms"]
    found = [
        (file.parent.name, key, lang)
        for file in catalogues(root)
        for key, said in json.loads(file.read_text("utf-8")).items()
        for lang, rival in RIVALS[term].items()
        if re.search(rival, said[lang], re.IGNORECASE)
    ]
    assert found == []


def written_out(svelte):
    """Words of a component's markup that no catalogue holds."""
    markup = re.sub(r"<(script|style)\b.*?</\1>|<!--.*?-->", "", svelte, flags=re.DOTALL)
    while markup != (bare := re.sub(r"\{[^{}]*\}", "", markup)):
        markup = bare
    return [word for word in re.findall(r">([^<>]*)<", re.sub(r"=>", "", markup)) if re.search(r"[A-Za-z]{3}", word)]


def test_words_written_into_a_component_are_seen():
    assert written_out('<script>let a = "text";</script><p class="x">{t("a")} loose words</p>') == [" loose words"]
    assert written_out("<button onclick={() => (a = { b: 1 })}>{t('a')}</button>") == []


def test_no_component_writes_words_of_its_own(root):
    allowed = {"PNG", "SVG", "CSV", "Gnomon"}
    found = {
        (file.name, text.strip())
        for file in sorted((root / "explorer" / "src").rglob("*.svelte"))
        for text in written_out(file.read_text(encoding="utf-8"))
        if text.strip() not in allowed
    }
    assert found == set()
