"""`gnomon eval`: the numbers of the end of training again, with intervals, or those of other data."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gnomon.checkpoints import load, save_model
from gnomon.cli.main import cli
from gnomon.train import read_metrics

SMALL = ["--set", "model.d_model=16", "--set", "model.n_layers=1", "--set", "model.n_heads=2", "--quiet"]
TEXT = ["--tokenizer", "bytes", "--batch-size", "2", "--length", "8", "--set", "train.eval_windows=20"]
NUMBERS = ["--task", "numbers", "--set", "numbers.limit=400", "--set", "numbers.count=6", "--batch-size", "8"]


def gnomon(*arguments: object) -> Result:
    return CliRunner().invoke(cli, list(map(str, arguments)))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("gnomon.train.loop.plot_loss", lambda metrics, path: None)
    (tmp_path / "text.txt").write_text("".join(f"def f{i}(x):\n    return x + {i * i}\n" for i in range(60)))
    (tmp_path / "pairs.tsv").write_text("".join(f"word {i}\tpalabra {i}\n" for i in range(40)))
    return tmp_path


RUNS = {
    "text": (["text.txt", *TEXT], ["loss", "perplexity", "bits_per_byte"]),
    "numbers": (NUMBERS, ["loss", "perplexity", "exact_match_uniform", "exact_match_log_uniform"]),
    "pairs": (["pairs.tsv", "--task", "pairs", "--batch-size", "4"], ["loss", "perplexity", "bleu", "chrf"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("task", RUNS)
def test_it_gives_the_numbers_of_the_end_of_training_with_intervals_around_them(task):
    arguments, names = RUNS[task]
    trained = gnomon("train", *arguments, *SMALL, "-o", "run", "--steps", 2)
    assert trained.exit_code == 0, trained.output
    result = gnomon("eval", "run", "--json", "--quiet")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["run"], found["task"], list(found["measures"])) == ("run", task, names)
    logged = next(line for line in read_metrics(Path("run/metrics.jsonl")) if "valid_loss" in line)
    for name in names:
        measure = found["measures"][name]
        assert found[name] == measure["value"] == pytest.approx(logged[f"valid_{name}"])
        assert measure["low"] <= measure["value"] <= measure["high"]
        assert measure["count"] > 0
    assert found["measures"]["loss"]["low"] < found["measures"]["loss"]["high"]


def test_for_people_it_is_a_table():
    gnomon("train", "text.txt", *TEXT, *SMALL, "-o", "run", "--steps", 1)
    lines = gnomon("eval", "run", "--quiet").stdout.splitlines()
    assert lines[0] == "run: text"
    assert lines[1].split() == ["measured", "95", "%", "interval", "of"]
    assert [line.split("  ")[0] for line in lines[2:]] == ["loss", "perplexity", "bits per byte"]


def test_misleading_numbers_are_explained_after_training_and_in_the_table():
    """Targets of two words: BLEU is 0 whatever the model writes."""
    output = gnomon("train", *RUNS["pairs"][0], *SMALL, "-o", "run", "--steps", 1).stdout
    table = gnomon("eval", "run", "--quiet").stdout.splitlines()
    as_json = json.loads(gnomon("eval", "run", "--json", "--quiet").stdout)["measures"]
    assert table[-1].startswith("BLEU: it counts runs of one to four words, and no ")
    assert table[-1] in output.splitlines()
    assert f"BLEU: {as_json['bleu']['note']}" == table[-1]
    assert as_json["chrf"]["note"] == ""


def test_the_dtype_is_that_of_the_computation():
    gnomon("train", "text.txt", *TEXT, *SMALL, "-o", "run", "--steps", 1)
    losses = [
        json.loads(gnomon("eval", "run", "--dtype", dtype, "--json", "--quiet").stdout)["loss"]
        for dtype in ("auto", "float32", "float64", "bfloat16")
    ]
    assert losses[0] == losses[1]
    assert len(set(losses)) == 3
    assert losses == pytest.approx([losses[0]] * 4, rel=1e-2)


def test_a_run_is_measured_from_any_folder(folder, monkeypatch):
    gnomon("train", "text.txt", *TEXT, *SMALL, "-o", "run", "--steps", 1)
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    assert gnomon("eval", folder / "run", "--quiet").exit_code == 0


@pytest.mark.parametrize(("task", "file"), [("text", "other.txt"), ("pairs", "other.tsv")])
def test_other_data_are_measured_whole(folder, task, file):
    gnomon("train", *RUNS[task][0], *SMALL, "-o", "run", "--steps", 1)
    (folder / "other.txt").write_text("x = 1\n" * 40)
    (folder / "other.tsv").write_text("a\tb\nc\td\n")
    found = json.loads(gnomon("eval", "run", "--data", file, "--json", "--quiet").stdout)
    if task == "pairs":
        assert found["measures"]["loss"]["count"] == 2
    else:
        assert found["held_out_tokens"] == 20 * 8
    assert found["loss"] != json.loads(gnomon("eval", "run", "--json", "--quiet").stdout)["loss"]


def test_a_model_without_a_run_is_measured_on_a_text_and_asks_for_one(folder):
    gnomon("train", "text.txt", *TEXT, *SMALL, "-o", "run", "--steps", 1)
    save_model(load("run"), "bare")
    result = gnomon("eval", "bare", "--quiet")
    assert result.exit_code == 3
    assert "--data FILE" in result.stderr
    assert gnomon("eval", "bare", "--data", "text.txt", "--quiet").stdout.startswith("bare: text")


def test_data_that_changed_since_are_refused(folder):
    gnomon("train", "text.txt", *TEXT, *SMALL, "-o", "run", "--steps", 1)
    (folder / "text.txt").write_text("something else entirely\n" * 90)
    result = gnomon("eval", "run", "--quiet")
    assert result.exit_code == 3
    assert "have changed since" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [(["nowhere"], 3, "there is no run folder nowhere"), (["run", "--data", "nowhere.txt"], 3, "nowhere.txt")],
)
def test_bad_input_gets_one_line(arguments, code, message):
    gnomon("train", "text.txt", *TEXT, *SMALL, "-o", "run", "--steps", 1)
    result = gnomon("eval", *arguments, "--quiet")
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.slow
def test_numbers_make_their_own_data():
    gnomon("train", *NUMBERS, *SMALL, "-o", "run", "--steps", 1)
    result = gnomon("eval", "run", "--data", "text.txt", "--quiet")
    assert result.exit_code == 2
    assert "the task numbers makes its own data" in result.stderr
