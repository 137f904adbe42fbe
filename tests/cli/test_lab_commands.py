"""The commands below `gnomon lab`, and `gnomon advise`."""

import json

import pytest
import torch
from click.shell_completion import ShellComplete
from click.testing import CliRunner

import gnomon as gn
from gnomon.cli.main import cli
from gnomon.lab.exact.tasks import exact_tasks

TINY = ["--set", "model.d_model=16", "--set", "model.n_layers=1", "--steps", "2", "--batch-size", "2", "--count", "4"]


def ran(*arguments, code=0):
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def run(tmp_path):
    """A small RoPE model with its tokenizer, and text to read."""
    torch.manual_seed(0)
    model = gn.DecoderOnly(257, 16, 1, 2, position="rope(base=100)", max_positions=16)
    gn.save_model(model, tmp_path / "run", gn.Tokenizer.bytes())
    text = tmp_path / "text"
    text.mkdir()
    for n in range(4):
        (text / f"{n}.txt").write_text(f"{n} the dog bit the man and {n + 1} men bit the dog " * 4)
    return tmp_path / "run", text


def test_lab_names_the_commands_below_it():
    out = ran("lab", "--help")
    assert all(f"lab {name}" in out for name in ("tasks", "reproduce", "extension"))


@pytest.mark.parametrize("name", ["tasks", "reproduce", "extension"])
def test_each_of_them_has_its_own_help_with_examples(name):
    out = ran("lab", name, "--help")
    assert f"gnomon lab {name}" in out
    assert "--lang" in out
    assert "--json" in out


def test_the_shell_completes_their_names_and_options():
    def completions(args, incomplete):
        return [item.value for item in ShellComplete(cli, {}, "gnomon", "_X").get_completions(args, incomplete)]

    assert completions(["lab"], "t") == ["tasks", "t"]  # or a file
    assert "--positions" in completions(["lab", "tasks"], "--pos")


def test_without_a_name_the_tasks_are_listed_in_the_language_asked():
    assert all(name in ran("lab", "tasks") for name in exact_tasks())
    assert "Escribir símbolos al revés." in ran("lab", "tasks", "--lang", "es")
    assert [task["name"] for task in json.loads(ran("lab", "tasks", "--json"))["tasks"]] == list(exact_tasks())


def test_a_task_is_measured_and_kept(tmp_path):
    arguments = [
        "lab",
        "tasks",
        "sort",
        "--positions",
        "none",
        "--length",
        4,
        "--factors",
        "1,2",
        "--executor",
        "serial",
    ]
    found = json.loads(ran(*arguments, *TINY, "-o", tmp_path, "--json"))
    assert [(row["first"], row["last"]) for row in found["rows"]] == [(3, 4), (5, 8)]
    again = json.loads(ran(*arguments, *TINY, "-o", tmp_path, "--json"))
    assert again == found  # seconds too: nothing was computed again


def test_a_task_of_your_own_is_imported(tmp_path, monkeypatch):
    from gnomon.lab.exact import tasks

    monkeypatch.setattr(tasks, "_TASKS", dict(tasks._TASKS))
    (tmp_path / "my_own_task.py").write_text(
        "from gnomon.lab.exact.tasks import task\n"
        "@task(symbols=4, source='mine')\n"
        "def say_the_first(rng, n, k):\n"
        "    'Say the first.'\n"
        "    x = rng.integers(k, size=n)\n"
        "    return x, x[:1]\n"
    )
    arguments = ["lab", "tasks", "say-the-first", "--positions", "none", "--length", 4, "--factors", "1,2"]
    out = ran(*arguments, *TINY, "--executor", "serial", "-q", "--import", tmp_path / "my_own_task.py")
    assert "say-the-first: trained on questions of up to 4" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tasks", "sorting"], "unknown task 'sorting': did you mean 'sort'"),
        (["tasks", "sort", "--factors", "one"], "not a list of numbers"),
        (["tasks", "sort", "--set", "train.rate=1"], "rate"),
        (["reproduce", "alibi"], "unknown reproduction 'alibi'"),
    ],
)
def test_what_cannot_be_right_is_an_error(arguments, message):
    assert message in ran("lab", *arguments, code=2)


def test_reproductions_are_listed():
    assert "yarn-zero-shot" in ran("lab", "reproduce")
    assert set(json.loads(ran("lab", "reproduce", "--json"))["reproductions"]) >= {"alibi-table-2", "kazemnejad-copy"}


def test_extension_shows_rows_as_they_come_and_keeps_them(run, tmp_path):
    model, text = run
    arguments = ["lab", "extension", model, "--text", text, "--factors", 2, "--methods", "yarn", "--documents", 2]
    out = ran(*arguments, "-o", tmp_path / "rows.json")
    assert "as trained: " in out
    assert "yarn 2×" in out
    kept = json.loads((tmp_path / "rows.json").read_text())
    assert kept["trained"] == 16
    assert {row["method"] for row in kept["rows"]} == {"none", "yarn"}


def test_what_was_measured_before_an_interruption_is_shown(run, monkeypatch):
    model, text = run
    told = []

    def tell(row):
        told.append(row)
        if len(told) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("gnomon.cli.lab_extension.teller", lambda *_: tell)
    result = CliRunner().invoke(cli, ["lab", "extension", str(model), "--text", str(text), "--documents", "2"])
    assert result.exit_code == 130
    assert "Nats per token of the same targets" in result.output


def test_advice_is_given_in_the_language_asked(run):
    model, text = run
    out = ran("advise", model, "--to", 32, "--text", text, "--lang", "es", "-q")
    assert "Precio: leer 32 tokens" in out
    found = json.loads(ran("advise", model, "--to", 32, "--text", text, "--json"))
    assert found["choice"] in ("crop", "yarn", "dynamic", "ntk", "llama3", "linear")
    assert found["price"]["cache_bytes"] == 2 * found["price"]["cache_bytes_cropped"]


def test_a_model_that_reads_so_far_already_is_told_so(run):
    assert "reads 16 as it is" in ran("advise", run[0], "--to", 16, "--text", run[1], code=2)
