"""`gnomon tokenizer` as a person at a terminal and a program see it."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gnomon.cli.main import cli
from gnomon.data import Tokenizer


def run(*args: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(cli, ["tokenizer", *args], input=stdin)


def answer(*args: str, stdin: str | None = None) -> dict[str, Any]:
    """What the command says under --json."""
    result = run(*args, "--json", stdin=stdin)
    assert result.exit_code == 0, result.output
    printed: dict[str, Any] = json.loads(result.stdout)
    assert printed.pop("schema_version") == 1
    return printed


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """A folder with a BPE tokenizer of 280 tokens."""
    (tmp_path / "text.txt").write_text("the dog bit the man, el perro mordió al hombre\n" * 20, encoding="utf-8")
    assert run("train", str(tmp_path / "text.txt"), "--vocab-size", "280", "-o", str(tmp_path / "run")).exit_code == 0
    return tmp_path / "run"


def test_ids_are_printed_and_read_back(trained: Path) -> None:
    for source in ["bytes", str(trained), str(trained / "tokenizer.json")]:
        ids = run("encode", "the niño", "-t", source).output
        assert run("decode", *ids.split(), "-t", source).output == "the niño\n"
        assert answer("encode", "the niño", "-t", source) == {"ids": list(map(int, ids.split()))}
        assert answer("decode", ids, "-t", source) == {"text": "the niño"}


@pytest.mark.parametrize("ids", [["110 105"], ["110,105"], ["[110, 105]"], ["110", "105"]])
def test_ids_are_read_as_people_paste_them(ids: list[str]) -> None:
    assert run("decode", *ids).output == "ni\n"


def test_a_dash_or_nothing_is_standard_input() -> None:
    assert run("encode", "-", stdin="ñ\n").output == run("encode", stdin="ñ\n").output == "195 177 10\n"


def test_control_strings_are_text_unless_asked() -> None:
    assert answer("encode", "<|endoftext|>")["ids"] == list(b"<|endoftext|>")
    assert answer("encode", "<|endoftext|>", "--special")["ids"] == [256]
    assert answer("decode", "256", "--special")["text"] == "<|endoftext|>"
    assert answer("decode", "256")["text"] == ""


def test_training_saves_what_it_describes(trained: Path, tmp_path: Path) -> None:
    saved = Tokenizer.load(trained)
    printed = answer("train", str(tmp_path / "text.txt"), "--vocab-size", "280", "-o", str(tmp_path / "again"))
    assert (printed["sha256"], printed["vocab_size"], printed["kind"]) == (saved.sha256, 280, "bpe")
    assert printed["file"] == str(tmp_path / "again" / "tokenizer.json")
    assert printed["bytes_per_token"] > 2
    assert answer("show", "-t", str(trained))["sha256"] == saved.sha256


@pytest.mark.parametrize(("kind", "vocab_size"), [("bytes", 257), ("characters", 2 + len(set("abc ñ")))])
def test_other_kinds_are_trained_too(tmp_path: Path, kind: str, vocab_size: int) -> None:
    (tmp_path / "a.jsonl").write_text('{"body": "abc ñ"}\n', encoding="utf-8")
    args = ["train", str(tmp_path / "a.jsonl"), "--text-key", "body", "--kind", kind, "-o", str(tmp_path / "out")]
    assert answer(*args)["vocab_size"] == vocab_size
    assert Tokenizer.load(tmp_path / "out").kind == kind


@pytest.mark.slow
def test_the_embedded_text_is_the_default(tmp_path: Path) -> None:
    shown = run("train", "--kind", "characters", "-o", str(tmp_path))
    assert "stdlib: " in shown.output
    assert "sha256 " in shown.output


def test_show_lists_tokens_ids_and_bytes(trained: Path) -> None:
    rows = answer("show", "the niño", "-t", str(trained))["tokens"]
    assert [row["id"] for row in rows] == Tokenizer.load(trained).encode("the niño")
    assert sum(row["bytes"] for row in rows) == 9
    shown = run("show", "a ñ").output.splitlines()
    assert [line.split() for line in shown[:2]] == [["0", "97", "1", "B", "a"], ["1", "32", "1", "B", "␣"]]
    assert shown[-1] == "4 tokens, 4 bytes"


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["encode", "a", "-t", "nowhere"], 3, "cannot read the tokenizer nowhere"),
        (["train", "nowhere.txt", "-o", "out"], 3, "cannot read nowhere.txt"),
        (["train", "-o", "out", "--vocab-size", "100"], 2, "257"),
        (["decode", "9999"], 2, "9999 at position 0"),
        (["decode", "1.5"], 2, "'1.5' is no token id"),
        (["decode", "--", "-1"], 2, "'-1' is no token id"),
        (["trian"], 2, "train"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], code: int, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*args)
    assert result.exit_code == code
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_standard_input_that_is_no_text_is_refused() -> None:
    result = run("encode", stdin=b"a\xff")
    assert result.exit_code == 3
    assert "standard input is not UTF-8" in result.stderr
