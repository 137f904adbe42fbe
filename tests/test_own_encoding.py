"""The page about an encoding of one's own: its code is the example's, and its commands work, one after the other."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from gnomon.cli.main import cli
from gnomon.positions import base, get

HOUSE = Path(__file__).parents[1]
PAGE = (HOUSE / "docs" / "own-encoding.md").read_text(encoding="utf-8")
EXAMPLE = (HOUSE / "examples" / "my_encoding.py").read_text(encoding="utf-8")
COMMANDS = [shlex.split(line, comments=True) for line in re.findall(r"^gnomon .*$", PAGE, re.MULTILINE)]
TINY = {
    "train": ["texts", "--length", "16", "--steps", "2", "--set", "model.d_model=16", "--set", "model.n_layers=1",
              "--set", "model.n_heads=2"],
    "lab": ["texts", "--length", "8", "--factors", "1,2", "--steps", "2", "--vocab-size", "300", "--held-out", "0.3",
            "--workers", "2", "--set", "model.d_model=16", "--set", "model.n_layers=1", "--set", "model.n_heads=2"],
    "audit": ["--only", "packed = separate", "--only", "cached = full"],
}  # fmt: skip


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A folder with the examples, as a clone has them, and some texts."""
    shutil.copytree(HOUSE / "examples", tmp_path / "examples")
    (tmp_path / "texts").mkdir()
    for i in range(12):
        (tmp_path / "texts" / f"{i}.txt").write_text(f"{i} the dog bit the man and {i + 1} men bit the dog back. " * 12)
    monkeypatch.chdir(tmp_path)
    known = dict(base._REGISTRY)
    yield tmp_path
    base._REGISTRY.clear()
    base._REGISTRY.update(known)


def test_the_page_shows_the_class_of_the_example():
    [code] = re.findall(r"^```python\n(class .*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert code in EXAMPLE


@pytest.mark.slow
def test_five_commands_lead_from_the_idea_to_the_audit(clone):
    """At the lab with two workers, of which one trains another encoding."""
    assert [command[1] for command in COMMANDS] == ["positions", "plot", "train", "lab", "audit"]
    for _, name, *arguments in COMMANDS:
        result = CliRunner().invoke(cli, [name, *arguments, *TINY.get(name, [])], prog_name="gnomon")
        assert result.exit_code == 0, (name, result.output)
        if name in ("positions", "lab"):
            assert "mine" in result.stdout
    assert (clone / "mine-bias.png").exists()
    assert (clone / "runs" / "lab" / "mine" / "model.safetensors").exists()


def test_the_example_is_the_bias_of_the_paper(clone):
    """-r1 log(1 + r2 |i - j|), written out in numbers for two heads."""
    exec(compile(EXAMPLE, "my_encoding.py", "exec"), {"__name__": "my_encoding"})
    mine = get("mine").build(n_heads=2)
    with torch.no_grad():
        mine.r.copy_(torch.tensor([[0.5, 1.0], [2.0, 3.0]]))
    r1, r2 = (torch.log1p(torch.tensor(row).exp()) for row in ([0.5, 1.0], [2.0, 3.0]))
    position = torch.arange(5)
    bias = mine.bias(torch.arange(2.0)[:, None, None], position[:, None], position[None, :])
    distance = (position[:, None] - position[None, :]).abs()
    for head in (0, 1):
        torch.testing.assert_close(bias[head], -r1[head] * torch.log(1 + r2[head] * distance))
