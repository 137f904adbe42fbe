"""The page about recipes: its commands work, one after the other; and the example of boards."""

import importlib.util
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import gnomon as gn
from gnomon.checkpoints import load
from gnomon.cli.main import cli
from gnomon.positions.ids.base import _RECIPES

HOUSE = Path(__file__).parents[1]
PAGE = (HOUSE / "docs" / "recipes.md").read_text(encoding="utf-8")
COMMANDS = [shlex.split(line, comments=True) for line in re.findall(r"^gnomon .*$", PAGE, re.MULTILINE)]
SMALL = ["--set", "model.d_model=16", "--set", "model.n_layers=4", "--set", "model.n_heads=2"]
TINY = {
    "train": ["--steps", "2", "--length", "16"],
    "retrofit": ["--set", "length=16", "--documents", "0"],
    "lab": ["--length", "8", "--factors", "1,2", "--steps", "2", "--vocab-size", "300", "--held-out", "0.3",
            "--workers", "1", *SMALL],
}  # fmt: skip


@pytest.fixture
def texts(tmp_path, monkeypatch):
    """A folder with some texts, where the commands run."""
    (tmp_path / "my_texts").mkdir()
    for i in range(12):
        (tmp_path / "my_texts" / f"{i}.txt").write_text(f"{i} the dog bit the man and {i + 1} men bit the dog. " * 12)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(name, *arguments):
    new = SMALL if name == "train" and "--from" not in arguments else []
    result = CliRunner().invoke(cli, [name, *arguments, *TINY.get(name, []), *new], prog_name="gnomon")
    assert result.exit_code == 0, (name, arguments, result.output)
    return result.output


@pytest.mark.slow
def test_the_commands_of_the_page_work_one_after_the_other(texts):
    for _, name, *arguments in COMMANDS:
        run(name, *arguments)
    assert load("runs/rope").config.position.name == "rope"
    drope = load("runs/drope")
    assert drope.config.position.name == "log-scale"
    assert not torch.equal(drope.input.tokens.weight, load("runs/dropped").input.tokens.weight)
    assert torch.equal(load("runs/rope").input.tokens.weight, load("runs/dropped").input.tokens.weight)


@pytest.mark.slow
def test_a_recipe_and_a_schedule_are_known_to_the_command_line(texts):
    run("train", "my_texts", "--position", "rope(base=500), none", "-o", "runs/schedule")
    assert [repr(spec) for spec in load("runs/schedule").config.per_layer(3)] == [
        "rope(base=500)",
        "none()",
        "rope(base=500)",
    ]
    run(
        "train", "my_texts", "--position", "learned", "--set", "position.positions=random-start(40)", "-o", "runs/start"
    )
    model = load("runs/start")
    assert str(model.recipe) == "random-start(max=40)"
    assert model.input.position.max_positions >= 40
    result = CliRunner().invoke(cli, ["train", "my_texts", "--position", "rope, nome"])
    assert (result.exit_code, "did you mean 'none'" in result.stderr) == (2, True)


def test_position_coupling_on_the_page_is_a_recipe():
    known = dict(_RECIPES)
    [code] = re.findall(r"^```python\n(from dataclasses.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    try:
        exec(compile(code, "coupled.py", "exec"), scope := {"__name__": "coupled"})
        ids = torch.tensor([[1, 2, 11, 3, 4, 12, 4, 6]])  # 12 + 34 = 46
        assert scope["Coupled"]().read(ids, gn.Layout.dense(1, 8)).pos.tolist() == [[2, 1, 0, 2, 1, 0, 2, 1]]
        assert gn.positions.get("learned", positions="coupled").positions == scope["Coupled"]()
    finally:
        _RECIPES.clear()
        _RECIPES.update(known)


@pytest.fixture(scope="module")
def boards():
    spec = importlib.util.spec_from_file_location("boards", HOUSE / "examples" / "boards.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_line_of_three_is_found_wherever_it_lies(boards):
    mine = torch.rand(60, 5, 5, generator=torch.Generator().manual_seed(0)) < 0.4
    steps = ((0, 1), (1, 0), (1, 1), (1, -1))

    def won(board):
        cells = {(y, x) for y, x in np.argwhere(board)}
        return any(all((y + i * dy, x + i * dx) in cells for i in range(3)) for y, x in cells for dy, dx in steps)

    assert boards.lines(mine).tolist() == [won(board.numpy()) for board in mine]
    ids, labels = boards.boards(64, torch.Generator().manual_seed(1))
    assert labels.sum() == 32
    assert torch.equal(boards.lines((ids[:, 1:] == boards.NOUGHT).view(-1, 5, 5)).long(), labels)


def test_the_example_trains(boards, capsys):
    assert all(0.3 < share < 0.7 for share in boards.train("axial-rope", steps=2, batch=8))
