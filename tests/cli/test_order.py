"""`gnomon order`: who bit whom, told in three languages."""

import json

import pytest
from click.testing import CliRunner

from gnomon.cli.main import cli


def order(*arguments):
    result = CliRunner().invoke(cli, ["order", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize(
    ("lang", "message"),
    [
        ("en", ["the dog bit the man", "the man bit the dog", "equivariance", "layers: 2"]),
        ("es", ["el perro mordió al hombre", "el hombre mordió al perro", "equivarianza", "capas: 2"]),
        ("pt", ["o cachorro mordeu o homem", "o homem mordeu o cachorro", "equivariância", "camadas: 2"]),
    ],
)
def test_it_is_told_in_the_language_asked_for(lang, message):
    shown = order("--lang", lang, "--position", "rope")
    for words in message:
        assert words in shown


def test_the_numbers_are_printed_for_programs():
    report = json.loads(order("--json", "--seed", "5"))
    rows = {row["position"]: row for row in report["bidirectional"]}
    assert list(rows) == ["none", "sinusoidal", "learned", "rope", "alibi", "t5"]
    assert max(rows["none"][key] for key in ("scores", "outputs", "pooled")) < 1e-12
    assert min(row["outputs"] for name, row in rows.items() if name != "none") > 1e-3
    assert report["seed"] == 5
    assert [row["last_output"] > 1e-2 for row in report["causal_without_position"]] == [False, True, True]


def test_two_sentences_of_ones_own_are_compared():
    shown = order("--position", "rope", "--sentence", "the big dog saw Ann", "--sentence", "Ann saw the big dog")
    assert 'the spans of "the big dog" (11 tokens) and "Ann" (3) change places' in " ".join(shown.split())


@pytest.mark.parametrize(("lang", "sees"), [("en", "With position"), ("es", "Con posición"), ("pt", "Com posição")])
def test_what_position_does_is_said_only_where_one_is_compared(lang, sees):
    assert sees in order("--lang", lang, "--position", "alibi")
    assert sees not in order("--lang", lang, "--position", "none")


@pytest.mark.slow
def test_it_is_drawn(tmp_path):
    order("--lang", "pt", "--position", "alibi", "-o", tmp_path / "ordem.svg")
    svg = (tmp_path / "ordem.svg").read_text(encoding="utf-8")
    assert ">Quem mordeu quem?</text>" in svg
    assert ">com alibi</text>" in svg


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--position", "rop"], "did you mean 'rope'"),
        (["-o", "x.pdf"], ".png or .svg"),
        (["--sentence", "a b"], "give --sentence twice"),
        (["--sentence", "a b", "--sentence", "a c"], "only in the first: 'b'"),
        (["--layers", "0"], "0 is not in the range x>=1"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(arguments, message):
    result = CliRunner().invoke(cli, ["order", *arguments])
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert message in result.stderr


@pytest.mark.parametrize("command", [("order", "--position", "rope", "--lang", "pt"), ("positions", "--lang", "es")])
def test_a_narrow_terminal_gets_no_wider_lines(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 0, result.output
    assert [line for line in result.output.splitlines() if len(line) > 60] == []
