"""`gnomon predict`: the spans of a text or its class, and a clear line for a run that has neither."""

import json
import re

import pytest
import torch
from click.testing import CliRunner

import gnomon as gn
from gnomon.checkpoints import save_model
from gnomon.cli import predict as module
from gnomon.cli.main import cli
from gnomon.data import Tokenizer
from gnomon.data.python_source import KINDS
from gnomon.data.spans import Span, label_names
from gnomon.tasks.classes import classify
from gnomon.tasks.spans import find_spans

TEXT = "if x1 > 20: print(niño)  # año"
SIZES = {"d_model": 16, "n_layers": 1, "n_heads": 2, "causal": False, "init_std": 0.5}


@pytest.fixture(scope="module")
def spans(tmp_path_factory):
    torch.manual_seed(0)
    model = gn.EncoderOnly(257, **SIZES, head="labels", n_classes=13)
    model.tokenizer, model.labels = Tokenizer.bytes(), label_names(KINDS)
    return save_model(model, tmp_path_factory.mktemp("runs") / "spans")


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    torch.manual_seed(0)
    model = gn.EncoderOnly(257, **SIZES, head="classes", n_classes=3)
    model.tokenizer, model.labels = Tokenizer.bytes(), ("cold", "mild", "warm")
    return save_model(model, tmp_path_factory.mktemp("runs") / "classes")


def run(*arguments, **more):
    return CliRunner().invoke(cli, ["predict", *map(str, arguments)], **more)


def test_spans_are_listed_with_their_places(spans):
    expected = find_spans(gn.load(spans), TEXT)
    assert len(expected) > 3
    lines = [line.split("\t") for line in run(spans, TEXT).stdout.splitlines()]
    assert [Span(int(a), int(b), kind) for a, b, kind, _ in lines] == expected
    assert [text for *_, text in lines] == [repr(TEXT[s.start : s.end]) for s in expected]


def test_spans_for_programs(spans):
    found = json.loads(run(spans, TEXT, "--json").stdout)
    assert found["text"] == TEXT
    assert [(s["start"], s["end"], s["kind"]) for s in found["spans"]] == find_spans(gn.load(spans), TEXT)
    assert all(TEXT[s["start"] : s["end"]] == s["text"] for s in found["spans"])


def test_text_comes_from_standard_input_too(spans):
    assert run(spans, "-", input=TEXT).stdout == run(spans, TEXT).stdout
    assert run(spans, "-", input=b"\xff").exit_code == 3


def test_on_a_terminal_the_whole_text_is_shown_in_colours(spans, monkeypatch):
    shown = module._colour_spans("if x: y", [Span(0, 2, "keyword"), Span(6, 7, "name")], list(KINDS))
    assert shown == "\x1b[35mif\x1b[0m x: \x1b[34my\x1b[0m"
    assert module._colour_spans("no spans", [], list(KINDS)) == "no spans"


def test_classes_come_with_probabilities(classes):
    expected = classify(gn.load(classes), TEXT)
    lines = [line.split() for line in run(classes, TEXT).stdout.splitlines()]
    assert lines == [[label, f"{100 * probability:.2f}", "%"] for label, probability in expected]
    found = json.loads(run(classes, TEXT, "--json").stdout)
    assert found["label"] == expected[0][0]
    assert [c["probability"] for c in found["classes"]] == pytest.approx([p for _, p in expected])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: gn.DecoderOnly(257, 16, 1, 2), "is decoder-only with a head of tokens, .* Try gnomon generate"),
        (lambda: gn.EncoderOnly(257, **SIZES, head="masked"), "a head of masked, .* Try gnomon fill"),
        (lambda: gn.EncoderOnly(257, **SIZES, head="pooled"), "a head of pooled, .* Try gnomon neighbors"),
    ],
)
def test_a_run_without_labels_is_told_from_one_with(tmp_path, model, message):
    made = model()
    made.tokenizer = Tokenizer.bytes()
    result = run(save_model(made, tmp_path / "run"), "x")
    assert result.exit_code == 2
    assert "predict is for runs of the tasks spans and classes" in result.stderr
    assert re.search(message, result.stderr)


def test_nothing_to_classify_and_no_run_are_named(classes, tmp_path):
    assert "there is no text to classify" in run(classes, " ").stderr
    assert run(classes, " ").exit_code == 2
    assert run(tmp_path / "nowhere", "x").exit_code == 3


def test_a_run_reads_as_many_tokens_as_it_was_trained_on(tmp_path):
    """What the folder's own state says outvotes the default."""
    table = tmp_path / "t.csv"
    table.write_text("text,label\n" + "".join(f"{w} {i},{w}\n" for w in ("sun", "ice") for i in range(6)))
    arguments = ["--task", "classes", str(table), "-o", str(tmp_path / "run"), "--steps", "1", "--length", "4", "-q"]
    sizes = ["--tokenizer", "bytes", "--set", "model.d_model=16", "--set", "model.n_layers=1"]
    made = CliRunner().invoke(cli, ["train", *arguments, *sizes])
    assert made.exit_code == 0, made.output
    assert "gnomon predict" in made.stdout
    assert run(tmp_path / "run", "ice and more").stdout == run(tmp_path / "run", "ice ").stdout
    assert set(gn.load(tmp_path / "run").labels) == {"ice", "sun"}
