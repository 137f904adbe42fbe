"""`gnomon fill`: guesses for the gaps of a text."""

import json

import pytest
import torch
from click.testing import CliRunner

import gnomon as gn
from gnomon.checkpoints import save_model
from gnomon.cli.main import cli
from gnomon.data import Tokenizer
from gnomon.tasks.masked import fill


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    torch.manual_seed(0)
    model = gn.EncoderOnly(258, 16, 1, 2, causal=False, head="masked", init_std=0.5)
    model.tokenizer = Tokenizer.bytes().with_mask()
    return save_model(model, tmp_path_factory.mktemp("runs") / "masked")


def run(*arguments):
    return CliRunner().invoke(cli, ["fill", *map(str, arguments)])


def test_the_best_guesses_are_listed_for_each_gap(folder):
    first, second = fill(gn.load(folder), "a[MASK]b[MASK]", 3)
    best, *gaps = run(folder, "a[MASK]b[MASK]", "--top", 3).stdout.rstrip("\n").split("\n\n")
    assert best == f"a{first[0].text}b{second[0].text}"
    for gap, guesses in zip(gaps, (first, second), strict=True):
        assert [line.split() for line in gap.splitlines()] == [
            [f"{100 * g.probability:.2f}", "%", g.token] for g in guesses
        ]


def test_guesses_for_programs(folder):
    found = json.loads(run(folder, "a[MASK]", "--json").stdout)
    [guesses] = fill(gn.load(folder), "a[MASK]")
    assert found["filled"] == "a" + guesses[0].text
    assert [[g["id"] for g in gap] for gap in found["gaps"]] == [[g.id for g in guesses]]
    assert found["gaps"][0][0]["probability"] == pytest.approx(guesses[0].probability)


def test_what_cannot_be_filled_is_named(folder, tmp_path):
    result = run(folder, "no gap")
    assert (result.exit_code, "write [MASK] where" in result.stderr) == (2, True)
    writer = gn.DecoderOnly(257, 16, 1, 2)
    writer.tokenizer = Tokenizer.bytes()
    result = run(save_model(writer, tmp_path / "run"), "a[MASK]")
    assert (result.exit_code, "fills no gaps" in result.stderr) == (2, True)


def test_a_run_of_the_task_fills_gaps(tmp_path):
    (tmp_path / "text.txt").write_text("".join(f"import {w}\n" for w in ("os", "re", "sys")) * 30)
    sizes = ["--tokenizer", "bytes", "--set", "model.d_model=16", "--set", "model.n_layers=1", "--length", "8"]
    arguments = ["train", "--task", "masked", str(tmp_path / "text.txt"), "-o", str(tmp_path / "run"), "--steps", "2"]
    made = CliRunner().invoke(cli, [*arguments, *sizes, "-q"])
    assert made.exit_code == 0, made.output
    assert "accuracy" in made.stdout
    assert "gnomon fill" in made.stdout
    assert run(tmp_path / "run", "import [MASK]").exit_code == 0
