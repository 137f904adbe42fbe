"""`gnomon lab`: options become settings, the result is a table or one JSON object, mistakes are one line."""

import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner

from gnomon.cli.main import cli

TINY = [
    "--length", "8", "--factors", "1,2", "--steps", "2", "--vocab-size", "300", "--held-out", "0.3", "--workers", "1",
    "--set", "model.d_model=16", "--set", "model.n_layers=1", "--set", "model.n_heads=2", "--set", "train.warmup=1",
]  # fmt: skip
MINE = """
from gnomon.positions import PositionEncoding

class Still(PositionEncoding):
    \"\"\"Does nothing, under a name of its own.\"\"\"
    name = "still"
"""


def run(*arguments):
    return CliRunner().invoke(cli, ["lab", *map(str, arguments)], prog_name="gnomon")


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """A folder with a dozen files."""
    folder = tmp_path_factory.mktemp("texts")
    rng = random.Random(0)
    for i in range(12):
        words = [rng.choice(["dog", "man", "bit", "the", "rain", "old"]) for _ in range(80)]
        (folder / f"{i}.txt").write_text(" ".join(words))
    return folder


@pytest.fixture(autouse=True)
def _somewhere(tmp_path, monkeypatch):
    """Default folders are made where the test runs."""
    monkeypatch.chdir(tmp_path)


def test_a_table_and_a_folder_come_out(texts, tmp_path):
    result = run(*TINY, "--positions", "rope, rope(base=200)", "--text", texts)
    assert result.exit_code == 0, result.output
    assert "rope(base=200)" in result.stdout
    assert "byte trigram" in result.stdout
    assert "runs/lab/report.html" in result.stdout
    assert "2 models, 1 layer of width 16" in result.stderr
    kept = {path.name for path in Path("runs/lab").iterdir()}
    assert {"report.html", "report.json", "table.txt", "rope", "rope-base=200", "extrapolation.png"} <= kept


def test_json_is_one_object_and_nothing_else(texts):
    result = run(*TINY, "--positions", "none,learned", "--text", texts, "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert data["schema_version"] == 1
    assert data["lengths"] == [8, 16]
    assert [row["label"] for row in data["rows"]] == ["none", "learned"]
    assert data["rows"][1]["bits"][1] is None
    assert result.stderr == ""


@pytest.mark.slow
def test_quiet_prints_the_table_alone(texts):
    result = run(*TINY, "--positions", "none", texts, "--quiet")
    assert result.exit_code == 0
    assert result.stderr == ""
    assert "report.html" not in result.stdout
    assert "byte trigram" in result.stdout


@pytest.mark.slow
def test_several_texts_may_be_given_in_a_row(texts):
    files = sorted(texts.iterdir())
    result = run(*TINY, "--positions", "none", "--json", "--text", *files)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["about"]["corpus"]["documents"] == 12


@pytest.mark.slow
def test_another_experiment_takes_another_default_folder_and_the_same_takes_the_same(texts):
    assert run(*TINY, "--positions", "none", texts, "-q").exit_code == 0
    assert run(*TINY, "--positions", "none", texts, "-q").exit_code == 0
    assert not Path("runs/lab-2").exists()
    assert run(*TINY, "--positions", "none", texts, "-q", "--lr", "1e-4").exit_code == 0
    assert Path("runs/lab-2/report.html").exists()
    result = run(*TINY, "--positions", "none", texts, "-q", "--lr", "2e-4", "-o", "runs/lab")
    assert result.exit_code == 2
    assert "train.lr 0.003 there" in result.stderr or "train.lr" in result.stderr


def test_settings_come_from_a_file_too_and_flags_win(texts, tmp_path):
    (tmp_path / "lab.toml").write_text(
        'positions = ["alibi"]\nfactors = [1, 2]\ntrain_length = 8\nvocab_size = 300\nheld_out = 0.3\n'
        "[model]\nd_model = 16\nn_layers = 1\nn_heads = 2\n"
        "[train]\nsteps = 1\nwarmup = 1\n[train.lr_of]\nalibi = 1e-3\n"
    )
    result = run("--config", "lab.toml", "--text", texts, "--json", "--steps", "2", "--workers", "1")
    assert result.exit_code == 0, result.output
    settings = json.loads(result.stdout)["settings"]
    assert settings["train"]["steps"] == 2
    assert settings["train"]["lr_of"] == {"alibi": 1e-3}
    assert settings["positions"] == ["alibi"]


@pytest.mark.slow
def test_combine_is_an_axis(texts):
    result = run(*TINY, "--positions", "sinusoidal,none", "--combine", "add,concat", "--json", texts)
    assert result.exit_code == 0, result.output
    labels = [row["label"] for row in json.loads(result.stdout)["rows"]]
    assert labels == ["sinusoidal", "sinusoidal concat", "none"]


def test_encodings_of_ones_own_join_by_import(texts, tmp_path):
    (tmp_path / "still_encoding.py").write_text(MINE)
    result = run("--import", "still_encoding", *TINY, "--positions", "still,none", "--json", texts)
    assert result.exit_code == 0, result.output
    still, none = json.loads(result.stdout)["rows"]
    assert still["label"] == "still"
    assert still["bits"] == none["bits"]  # it does nothing


@pytest.mark.slow
def test_encodings_of_ones_own_join_from_a_file_at_two_workers(texts, tmp_path):
    """The worker that trains "none" must know "still" too, and must have imported what makes it: a class of another
    module, which alone does not know its name."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "my_maker.py").write_text(
        f"def make():\n    {MINE.strip().replace(chr(10), chr(10) + '    ')}\n"
    )
    (tmp_path / "mine" / "my_made.py").write_text("from my_maker import make\nmake()\n")
    tiny = ["2" if word == "1" and TINY[n - 1] == "--workers" else word for n, word in enumerate(TINY)]
    result = run("--import", "mine/my_made.py", *tiny, "--positions", "still,none", "--json", texts)
    from gnomon.positions import base

    base._REGISTRY.pop("still", None)
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert data["about"]["machine"]["workers"] == 2
    assert [row["label"] for row in data["rows"]] == ["still", "none"]


@pytest.mark.slow
def test_minutes_become_steps(texts, monkeypatch):
    monkeypatch.setattr("gnomon.lab.budget.seconds_per_step", lambda settings, vocab_size: 1.0)
    tiny = [word for word in TINY if word not in ("--steps", "2")]
    result = run(*tiny, "--positions", "none", "--minutes", "0.1", "--json", texts)
    assert result.exit_code == 0, result.output
    steps = json.loads(result.stdout)["settings"]["train"]["steps"]
    assert steps == round(6 * 5 / 6 / 1.1)


@pytest.mark.parametrize(
    ("arguments", "says", "code"),
    [
        (["--positions", "rop"], "did you mean 'rope'", 2),
        (["--positions", ""], "a name that is empty", 2),
        (["--factors", "1,x"], "whole numbers", 2),
        (["--factors", "0"], "factors are multiples", 2),
        (["--combine", "append"], "append", 2),
        (["--minutes", "3", "--steps", "5"], "--steps and --minutes", 2),
        (["--minutes", "-1"], "minutes must be above 0", 2),
        (["--set", "train.lrr=1"], "train.lr", 2),
        (["--text", "nowhere.txt"], "nowhere.txt", 3),
        (["--length", "2"], "train_length must be at least 4", 2),
    ],
)
def test_mistakes_are_one_line(arguments, says, code):
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert says in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not Path("runs").exists()


def test_text_without_long_documents_is_refused_with_a_way_out(texts):
    result = run(*TINY, "--factors", "1,64", "--positions", "none", texts)
    assert result.exit_code == 3
    assert "no held-out document has the 513 tokens" in result.stderr
    assert "times the training length" in result.stderr


@pytest.mark.slow
def test_a_grid_from_a_file_has_a_panel_for_each_size_and_length(texts, tmp_path):
    (tmp_path / "grid.toml").write_text(
        'positions = ["none"]\ntasks = ["text", "sort"]\ntask_lengths = [4]\ntask_steps = 1\nsizes = ["1x16", "1x32"]\n'
        "train_length = 8\ntrain_lengths = [16]\nfactors = [1, 2]\nvocab_size = 300\nheld_out = 0.3\n"
        "[train]\nsteps = 1\nwarmup = 1\n"
    )
    result = run("--config", "grid.toml", "--text", texts, "--workers", "1", "-o", "grid")
    assert result.exit_code == 0, result.output
    names = {path.name for path in Path("grid/panels").iterdir()}
    assert names == {"1x16-8", "1x16-16", "1x32-8", "1x32-16"}
    assert "1 layers of width 32, trained on 16 tokens" in result.stdout
    assert "sort" in result.stdout
    data = json.loads(run("--config", "grid.toml", "--text", texts, "-o", "grid", "--resume", "--json").stdout)
    assert len(data["panels"]) == 4
    assert all(panel["about"]["reused"] == ["none"] * 4 for panel in data["panels"])


@pytest.mark.slow
def test_a_budget_says_what_it_leaves_out(texts, monkeypatch):
    monkeypatch.setattr("gnomon.lab.budget.seconds_per_step", lambda settings, vocab_size: 1.0)
    result = run(*TINY, "--positions", "none,rope", "--seeds", "5", "--budget", "3s", "--text", texts, "--lang", "en")
    assert result.exit_code == 0, result.output
    assert "No time for, within the budget: 4 of 5 seeds" in result.stderr
    assert "No time for" in result.stdout


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (["--budget", "soon"], "not a time such as 10m"),
        (["--budget", "1m", "--minutes", "5"], "give one of them"),
        (["--rates", "fast"], "list of numbers"),
        (["--sizes", "wide"], "LAYERSxWIDTH"),
        (["--protocols", "crop"], "protocol"),
        (["--tasks", "juggle"], "task"),
        (["--executor", "slurm"], "serial, processes, ray"),
    ],
)
def test_a_mistake_in_a_grid_is_one_line(texts, wrong, says):
    result = run("--positions", "none", "--text", texts, *wrong)
    assert result.exit_code == 2
    assert says in result.output
    assert "Traceback" not in result.output


@pytest.mark.slow
def test_two_results_are_compared_by_a_command(texts):
    for lr in ("1e-3", "1e-2"):
        done = run(*TINY, "--positions", "none,rope", "--lr", lr, "-o", f"runs/{lr}", "--text", texts)
        assert done.exit_code == 0, done.output
    data = json.loads(run("compare", "runs/1e-3", "runs/1e-2", "--json").stdout)
    assert data["settings"] == {"train.lr": [1e-3, 1e-2]}
    assert {row["position"] for row in data["rows"]} == {"none", "rope"}
    shown = run("compare", "runs/1e-3", "runs/1e-2", "--lang", "es")
    assert "tau de Kendall" in shown.stdout
    assert run("compare", "runs/1e-3", "nowhere").exit_code == 3


def test_the_standard_preset_gives_other_defaults_only():
    from gnomon.cli.config import load_config
    from gnomon.lab.settings import PRESETS, LabSettings

    standard = load_config(PRESETS["standard"], None, ["seeds=2"], {}).plain()
    assert type(standard) is LabSettings
    assert standard.seeds == 2
    assert len(standard.rates) == 3
    assert load_config(PRESETS["quick"], None, [], {}) == LabSettings()
