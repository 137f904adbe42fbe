"""`gnomon neighbors`: words, sentences, and a map of either."""

import json

import pytest
import torch
from click.testing import CliRunner

import gnomon as gn
from gnomon.checkpoints import save_model
from gnomon.cli.main import cli
from gnomon.data import Tokenizer
from gnomon.models.similarity import neighbors, sentence_vectors

LINES = ["import os", "import sys", "return x", "import os", "", "return None"]
SIZES = {"d_model": 16, "n_layers": 1, "n_heads": 2}
MODELS = {
    "decoder": lambda: gn.DecoderOnly(257, **SIZES),
    "encoder": lambda: gn.EncoderOnly(257, **SIZES, causal=False),
    "translator": lambda: gn.EncoderDecoder(257, **SIZES),
}


@pytest.fixture(scope="module", params=MODELS)
def folder(request, tmp_path_factory):
    torch.manual_seed(0)
    model = MODELS[request.param]()
    model.tokenizer = Tokenizer.bytes()
    return save_model(model, tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(LINES))
    return path


def run(*arguments, **more):
    return CliRunner().invoke(cli, ["neighbors", *map(str, arguments)], **more)


def test_the_nearest_tokens_of_each_word_are_listed(folder):
    model = gn.load(folder)
    parts = run(folder, "a", "b", "--top", 3).stdout.rstrip("\n").split("\n\n")
    for part, word in zip(parts, "ab", strict=True):
        head, *rest = part.splitlines()
        assert head == word
        assert [line.split() for line in rest] == [[f"{n.cosine:.3f}", n.text] for n in neighbors(model, word, 3)]


@pytest.mark.parametrize(
    ("lang", "head"),
    [
        ("en", "cab: mean of 3 tokens, c | a | b"),
        ("es", "cab: media de 3 tokens, c | a | b"),
        ("pt", "cab: média de 3 tokens, c | a | b"),
    ],
)
def test_a_word_of_several_tokens_is_pooled_and_that_is_said(folder, lang, head):
    assert run(folder, "cab", "--lang", lang).stdout.splitlines()[0] == head
    (found,) = json.loads(run(folder, "cab", "--json").stdout)["found"]
    assert found["tokens"] == ["c", "a", "b"]
    assert {"a", "b", "c"}.isdisjoint(n["text"] for n in found["neighbors"])


def test_neighbors_for_programs(folder):
    found = json.loads(run(folder, "a", "--json").stdout)["found"]
    expected = neighbors(gn.load(folder), "a", 8)
    assert found[0]["query"] == "a"
    assert [n["place"] for n in found[0]["neighbors"]] == [n.place for n in expected]


def test_sentences_are_compared_with_each_line_once_and_not_with_themselves(folder, lines):
    found = json.loads(run(folder, "import os", "--sentences", lines, "--json").stdout)["found"][0]["neighbors"]
    assert sorted(n["text"] for n in found) == ["import sys", "return None", "return x"]
    vectors = sentence_vectors(gn.load(folder), ["import os", *[n["text"] for n in found]])
    cosines = torch.cosine_similarity(vectors[:1], vectors[1:])
    assert [n["cosine"] for n in found] == pytest.approx(cosines.tolist(), abs=1e-5)
    assert cosines.tolist() == sorted(cosines.tolist(), reverse=True)


@pytest.mark.slow
def test_sentences_come_from_standard_input_too(folder, lines):
    from_file = run(folder, "import os", "--sentences", lines).stdout
    assert run(folder, "import os", "--sentences", "-", input="\n".join(LINES)).stdout == from_file


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("a", "b"), ("a", "cab")])
@pytest.mark.parametrize("with_lines", [False, True])
def test_a_map_is_drawn_of_words_of_sentences_and_of_everything(folder, lines, tmp_path, words, with_lines):
    path = tmp_path / "map.png"
    result = run(folder, *words, "--map", path, *(["--sentences", lines] if with_lines else []))
    assert result.exit_code == 0, result.output
    assert path.read_bytes().startswith(b"\x89PNG")
    assert str(path) in result.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "give one or more words, or --map"),
        ([""], 2, "this model cannot read '', which is nothing to it: give another word"),
        (["a", "--map", "map.gif"], 2, "pictures are written as .png or .svg"),
        (["a", "--sentences", "nowhere.txt"], 3, "cannot read nowhere.txt"),
        (["a", "--sentences", "empty.txt"], 3, "holds no sentences"),
        ([" ", "--sentences", "one.txt"], 2, "is no sentence"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_drawn(folder, tmp_path, monkeypatch, arguments, code, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").write_text("\n \n")
    (tmp_path / "one.txt").write_text("one")
    result = run(folder, *arguments)
    assert (result.exit_code, message in result.stderr) == (code, True), result.stderr
    assert not (tmp_path / "map.gif").exists()
