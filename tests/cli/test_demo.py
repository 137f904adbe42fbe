"""`gnomon demo`: no arguments needed; here with a few steps, on the text that every Python brings along."""

import json
import re

import pytest
from click.testing import CliRunner

from gnomon.checkpoints import load
from gnomon.cli.demo import _indent
from gnomon.cli.main import cli

TINY = ["demo", "--steps", "2", "--length", "8", "--positions", "none,learned,alibi", "--workers", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("demo") / "here"


@pytest.fixture(scope="module")
def result(folder):
    return CliRunner().invoke(cli, [*TINY, "-o", str(folder)], prog_name="gnomon")


@pytest.mark.slow
def test_it_says_what_it_will_do_and_how_long_it_takes(result):
    assert result.exit_code == 0, result.output
    assert "3 models, 2 layers of width 128, that differ in position only: “none” (no position), learned, alibi." in (
        result.stderr
    )
    assert re.search(r"Text: stdlib, [\d.]+ MB in \d+ documents .*, sha256 [0-9a-f]{12}", result.stderr)
    span = r"[\d.]+ (seconds|minutes)"
    assert re.search(rf"About {span} on this machine. .* the first after about {span}", result.stderr)


@pytest.mark.slow
def test_the_table_grows_by_a_line_as_each_model_ends(result):
    """On the way, below the head and the trigram's line; the numbers are those of the table at the end."""
    lines = result.stderr.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("byte trigram"))
    assert "n = 8" in lines[start - 1]
    assert [line.split()[0] for line in lines[start + 1 : start + 4]] == ["none", "learned", "alibi"]
    for line in lines[start : start + 4]:
        numbers = re.findall(r"\d\.\d{3}|n/a", line)
        assert re.search(rf"^{line.split('  ')[0]} +{' +'.join(numbers[:5])}", result.stdout, re.MULTILINE), line


@pytest.mark.slow
def test_it_prints_the_table_the_files_a_sample_and_what_to_try(result, folder):
    for text in ("byte trigram", f"{folder}/report.html", "writes:", "    def ", "Try next:", "seed 0", "torch"):
        assert text in result.stdout
    assert re.search(r"learned +\d\.\d{3} +n/a +n/a", result.stdout)


@pytest.mark.slow
def test_everything_is_kept(result, folder):
    kept = {path.name for path in folder.iterdir()}
    pictures = {f"{name}.{kind}" for name in ("extrapolation", "by_position") for kind in ("png", "svg")}
    assert kept == {
        "none",
        "learned",
        "alibi",
        "report.html",
        "report.json",
        "table.txt",
        "table.tex",
        "results.csv",
        "experiment.json",
        "tokenizer.json",
        "tokenizer_config.json",
        *pictures,
    }


@pytest.mark.slow
def test_the_page_shows_what_the_best_model_wrote(result, folder):
    sample = json.loads((folder / "report.json").read_text())["sample"]
    assert sample["prompt"] == "def "
    assert sample["label"] in ("none", "alibi")
    assert "What a model writes" in (folder / "report.html").read_text()


@pytest.mark.slow
def test_its_models_can_write(result, folder):
    command = re.search(r"gnomon (generate .*/(none|alibi)) --prompt 'class '", result.stdout)
    model = load(command.group(1).split()[1])
    assert model.tokenizer is not None
    written = CliRunner().invoke(cli, [*command.group(1).split(), "--prompt", "class ", "--max-new-tokens", "3"])
    assert written.exit_code == 0
    assert written.output.startswith("class ")


@pytest.mark.slow
def test_resuming_a_finished_demo_trains_nothing_and_finds_the_same(result, folder):
    again = CliRunner().invoke(cli, [*TINY, "-o", str(folder), "--resume", "--json"], prog_name="gnomon")
    assert again.exit_code == 0, again.output
    data = json.loads(again.stdout)
    assert data["about"]["reused"] == ["none", "learned", "alibi"]
    assert data["folder"] == str(folder)
    table = result.stdout.partition("What position costs")[0]
    assert all(f"{row['bits'][0]['value']:.3f}" in table for row in data["rows"])


@pytest.mark.slow
def test_another_demo_does_not_write_over_it(result, folder):
    other = CliRunner().invoke(cli, [*TINY, "--steps", "3", "-o", str(folder)], prog_name="gnomon")
    assert other.exit_code == 2
    assert "train.steps 2 there, 3 here" in other.stderr


def test_by_default_all_six_are_trained_the_most_telling_pair_first():
    from gnomon.lab import LabSettings

    assert LabSettings().positions[:2] == ("alibi", "rope")
    assert set(LabSettings().positions) == {"none", "sinusoidal", "learned", "rope", "alibi", "t5"}
    assert LabSettings().lengths == [64, 128, 256, 512, 1024]


def test_what_a_model_writes_cannot_command_the_terminal():
    assert _indent("a\x1b[2Jb\tc\n\x07") == "    a·[2Jb c\n    ·"
