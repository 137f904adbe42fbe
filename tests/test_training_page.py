"""docs/training.md: its commands run, and what it says of the settings is theirs (tests/test_readme.py)."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from gnomon.cli.main import cli

PAGE = Path(__file__).parents[1] / "docs" / "training.md"
SMALL = (
    "--tokenizer",
    "bytes",
    "--set",
    "model.d_model=16",
    "--set",
    "model.n_layers=1",
    "--set",
    "model.n_heads=2",
)
SHORT = ("--steps", "2", "--batch-size", "2", "--length", "8", "--set", "train.eval_windows=2", "--quiet")


def commands() -> list[list[str]]:
    """Each command of the page, without what starts several processes."""
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    lines = [line.partition("gnomon train ")[2] for block in blocks for line in block.splitlines()]
    return [shlex.split(line) for line in lines]


@pytest.mark.slow
def test_every_command_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("gnomon.train.loop.plot_loss", lambda metrics, path: None)
    texts = [f"def f{i}(x):\n    return x + {i * i}\n" for i in range(60)]
    for folder in ("my_texts", "books"):
        Path(folder).mkdir()
        for i, text in enumerate(texts):
            Path(folder, f"{folder}-{i}.txt").write_text(f"{folder} {text}")
    Path("web.jsonl").write_text("".join(f'{{"text": "page {i} of the web, which is large"}}\n' for i in range(60)))
    found = commands()
    assert len(found) >= 7
    for arguments in found:
        if "--resume" in arguments:
            more = ["--quiet"]
            arguments[arguments.index("5000")] = "3"
        else:
            more = [*SHORT, *(() if "--from" in arguments else SMALL)]
        result = CliRunner().invoke(cli, ["train", *arguments, *more])
        assert result.exit_code == 0, (arguments, result.output)
