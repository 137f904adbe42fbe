"""The explorer without a server: one folder, whole or not at all, that answers what the page asks."""

import json
import sys

import pytest
import torch

import gnomon as gn
from gnomon.data import Tokenizer
from gnomon.errors import BadInput
from gnomon.explorer import Shelf, export
from gnomon.explorer.export import RECORDING, key

MODULE = sys.modules["gnomon.explorer.export"]  # the package has a function of that name


@pytest.fixture(scope="module")
def shelf():
    torch.manual_seed(0)
    model = gn.DecoderOnly(vocab_size=257, d_model=8, n_layers=1, n_heads=1, position="rope").eval()
    model.tokenizer = Tokenizer.bytes()
    return Shelf([model])


def test_an_answer_is_named_as_the_page_names_it():
    values = {"text": "año", "model": "m", "grow": None, "top_p": 0.95, "on": True, "top_k": 0}
    said = 'x {"grow":null,"model":"m","on":true,"text":"año","top_k":0,"top_p":0.95}'
    assert key("x", values) == said


def test_a_folder_that_holds_something_else_is_left_alone(shelf, tmp_path):
    (tmp_path / "letters.txt").write_text("mine")
    with pytest.raises(BadInput, match="holds something else than an export"):
        export(shelf, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["letters.txt"]


@pytest.mark.slow
def test_the_folder_holds_the_page_and_the_chosen_texts(shelf, tmp_path, monkeypatch):
    monkeypatch.setattr(MODULE, "AUDITED", 0)
    folder = export(shelf, tmp_path / "out", ["my own words"])
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert page.index(RECORDING) < page.index("explorer.js")
    script = (folder / RECORDING).read_text(encoding="utf-8")
    said = json.loads(script.removeprefix("globalThis.GNOMON_RECORDING=").rstrip(";\n"))
    assert "my own words" in said["texts"]["flow decoder-only"]
    assert export(shelf, tmp_path / "out") == folder  # an earlier export is replaced
    assert [place.name for place in tmp_path.iterdir()] == ["out"]


def test_an_export_that_fails_leaves_nothing(shelf, tmp_path, monkeypatch):
    monkeypatch.setattr(MODULE, "record", lambda *_: {"not": float("nan")})
    with pytest.raises(ValueError, match="JSON"):
        export(shelf, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
