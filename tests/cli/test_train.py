"""`gnomon train`: from text to a run folder, stopped and resumed, and a clear line for what cannot be right."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result

import gnomon as gn
from gnomon.checkpoints import load
from gnomon.cli.config import resolve_config
from gnomon.cli.main import cli
from gnomon.cli.train_settings import complete_settings, lengthen, settings_of
from gnomon.data import Tokenizer
from gnomon.positions import base as positions_base
from gnomon.tasks import find
from gnomon.tasks import kind as kind_module
from gnomon.train import TrainConfig, read_metrics, read_state
from gnomon.train.run import Run

TINY = [
    "--tokenizer", "bytes", "--batch-size", "2", "--length", "8", "--set", "model.d_model=16", "--set",
    "model.n_layers=1", "--set", "model.n_heads=2", "--set", "train.eval_windows=4", "--set", "train.log_every=1",
]  # fmt: skip


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["train", *map(str, arguments)])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """The current folder, with a text in it; no plot is drawn."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("gnomon.train.loop.plot_loss", lambda metrics, path: None)
    (tmp_path / "text.txt").write_text("".join(f"def f{i}(x):\n    return x + {i * i}\n" for i in range(60)))
    return tmp_path


def test_a_text_becomes_a_run_that_generates(folder):
    result = run("text.txt", "-o", "run", *TINY, "--steps", 4)
    assert result.exit_code == 0, result.output
    assert "run: step 4" in result.stdout
    assert re.search(r"held out: loss \d\.\d+, perplexity \d+\.\d+, bits per byte \d\.\d+", result.stdout)
    assert "gnomon generate run --prompt" in result.stdout
    files = {path.name for path in (folder / "run").iterdir()}
    assert files >= {"config.json", "model.safetensors", "tokenizer.json", "training", "metrics.jsonl"}
    assert load("run").config.position.name == "learned"
    generated = CliRunner().invoke(cli, ["generate", "run", "--prompt", "def", "--max-new-tokens", "3"])
    assert generated.exit_code == 0
    assert generated.stdout.startswith("def")


def test_json_is_one_object_of_what_the_text_says():
    report = json.loads(run("text.txt", "-o", "run", *TINY, "--steps", 2, "--json").stdout)
    assert report["run"] == "run"
    assert report["steps"] == 2
    assert report["loss"] == read_metrics(Path("run/metrics.jsonl"))[-2]["valid_loss"]
    assert report["held_out_tokens"] == 4 * 8


def test_quiet_leaves_only_the_result():
    result = run("text.txt", "-o", "run", *TINY, "--steps", 1, "--quiet")
    assert result.stderr == ""
    assert result.stdout.startswith("run: step 1")


def test_without_an_output_each_run_finds_a_folder_of_its_own():
    for _ in range(2):
        run("text.txt", *TINY, "--position", "alibi", "--steps", 1, "--quiet")
    assert sorted(path.name for path in Path("runs").iterdir()) == ["mini-gpt-alibi", "mini-gpt-alibi-2"]


def test_what_is_there_is_never_replaced(folder):
    (folder / "run").mkdir()
    (folder / "run" / "mine").write_text("mine")
    result = run("text.txt", "-o", "run", *TINY)
    assert result.exit_code == 2
    assert "already exists and is not empty" in result.stderr
    assert [path.name for path in (folder / "run").iterdir()] == ["mine"]


def test_settings_come_from_a_file_from_set_and_from_flags_the_last_winning(folder):
    (folder / "run.toml").write_text(
        'preset = "mini-llama"\ntokenizer = "bytes"\nposition = {name = "rope", base = 500.0}\n'
        "[model]\nd_model = 16\nn_layers = 1\nn_heads = 2\nn_kv_heads = 1\n"
        "[train]\nsteps = 9\nlength = 8\nbatch_size = 2\nwarmup = 7\neval_windows = 2\n"
    )
    result = run("text.txt", "-o", "run", "-c", "run.toml", "--set", "position.base=700", "--steps", 1, "--seed", 3)
    assert result.exit_code == 0, result.output
    config, state = load("run").config, read_state("run")
    assert config.position.to_dict() == {"name": "rope", "base": 700}
    assert (config.norm, config.n_kv_heads, config.vocab_size) == ("rmsnorm", 1, 257)
    assert (state.config.steps, state.config.warmup, state.config.seed) == (1, 7, 3)


@pytest.mark.parametrize(
    ("arguments", "kind", "size"),
    [(["--tokenizer", "bytes"], "bytes", 257), (["--tokenizer", "characters"], "characters", None),
     (["--tokenizer", "bpe", "--vocab-size", "270"], "bpe", 270), (["--tokenizer", "own/tokenizer.json"], "bpe", 260)],
)  # fmt: skip
def test_the_vocabulary_is_one_of_three_or_your_own(folder, arguments, kind, size):
    Tokenizer.bpe(["abab" * 9, "cdcd" * 9, "efef" * 9], 260).save(folder / "own")
    result = run("text.txt", "-o", "run", *TINY, *arguments, "--steps", 1, "--quiet")
    assert result.exit_code == 0, result.output
    model = load("run")
    assert model.tokenizer.kind == kind
    assert model.config.vocab_size == model.tokenizer.vocab_size == (size or model.tokenizer.vocab_size)


def test_the_vocabulary_is_learned_without_the_held_out_text(folder, monkeypatch):
    read = []
    original = Tokenizer.characters
    monkeypatch.setattr(Tokenizer, "characters", lambda texts: read.extend(texts) or original(texts))
    for i in range(10):
        (folder / f"{i}.txt").write_text(f"document {i}\n" * 30)
    sources = [f"{i}.txt" for i in range(10)]
    run(*sources, "-o", "run", *TINY, "--tokenizer", "characters", "--held-out", 0.3, "--steps", 1)
    assert len(read) == 7


def test_a_key_of_jsonl_and_standard_input_are_read(folder):
    (folder / "text.jsonl").write_text("".join(json.dumps({"body": f"line {i} " * 20}) + "\n" for i in range(9)))
    assert run("text.jsonl", "--text-key", "body", "-o", "run", *TINY, "--steps", 1).exit_code == 0
    arguments = ["train", "-", "-o", "piped", *TINY, "--steps", "1"]
    assert CliRunner().invoke(cli, arguments, input="some text to learn from\n" * 30).exit_code == 0
    assert read_state("piped").origin["text"]["sources"] == ["-"]


def test_the_default_text_is_the_standard_library(monkeypatch):
    settings = settings_of(find("text"))()
    assert settings.kind.sources == ("stdlib",)
    assert settings.preset == "mini-gpt"


def test_help_tells_the_defaults_of_the_settings():
    text = " ".join(run("--help").output.split())
    for name, option in [("steps", "--steps"), ("batch_size", "--batch-size"), ("length", "--length"), ("lr", "--lr")]:
        default = getattr(TrainConfig(), name)
        assert re.search(rf"{option} \S+ [^\[]*\[default: {default:g}[\];,]", text), name


def test_an_encoding_of_your_own_is_trained_resumed_and_asked_for_by_its_module(folder, monkeypatch):
    monkeypatch.setattr("gnomon.positions.base._REGISTRY", dict(positions_base._REGISTRY))
    monkeypatch.setattr(sys, "path", list(sys.path))
    (folder / "my_shift.py").write_text(
        "from gnomon.positions import PositionEncoding\n"
        "class Shift(PositionEncoding):\n"
        "    name, acts, relative = 'shift', 'score', True\n"
        "    def __init__(self, by: float = 1.0) -> None:\n"
        "        super().__init__()\n"
        "        self.by = by\n"
        "    def bias(self, h, q, k):\n"
        "        return -self.by * (q - k).abs()\n"
    )
    mine = ["--import", "my_shift"]
    result = run("text.txt", "-o", "run", *TINY, *mine, "--position", "shift", "--set", "position.by=2", "--steps", 1)
    assert result.exit_code == 0, result.output
    assert load("run").config.position.to_dict() == {"name": "shift", "by": 2}
    assert run("--resume", "run", *mine, "--steps", 2).exit_code == 0
    del positions_base._REGISTRY["shift"]
    result = run("--resume", "run", "--steps", 3)
    assert result.exit_code == 3
    assert "--import MODULE" in result.stderr


def test_a_preset_has_its_own_learning_rate_unless_one_is_given():
    def rate(*sets: str) -> float:
        return complete_settings(resolve_config(settings_of(find("text")), sets=sets)).train.lr

    assert rate() == TrainConfig().lr
    assert rate("preset=gpt2-small") == 6e-4
    assert rate("preset=gpt2-small", "train.lr=1e-4") == 1e-4


@pytest.mark.parametrize(("given", "rows"), [([], 80), (["--set", "model.max_positions=90"], 90)])
def test_a_learned_table_follows_the_length_unless_it_is_given(given, rows):
    result = run("text.txt", "-o", "run", *TINY, "--length", 80, "--steps", 1, "--held-out", 0.2, *given, "--quiet")
    assert result.exit_code == 0, result.output
    assert load("run").config.max_positions == rows


def test_a_table_is_made_for_a_preset_that_has_none():
    result = run("text.txt", "-o", "run", *TINY, "--preset", "mini-llama", "--position", "learned", "--steps", 1)
    assert result.exit_code == 0, result.output
    assert load("run").config.max_positions == 8


def test_a_model_without_a_table_is_trained_to_the_length_of_its_rows():
    from gnomon.cli.train_settings import make_model

    given = resolve_config(settings_of(find("text")), sets=["position.name=rope", "train.length=24"])
    model = make_model(complete_settings(given), Tokenizer.bytes(), torch.device("cpu"))
    assert model.config.max_positions == 24


def test_a_name_that_is_not_utf_8_is_refused_before_the_first_step(folder):
    before = sorted(folder.iterdir())
    result = run("text.txt", "-o", os.fsdecode(b"r\xffn"), *TINY, "--steps", 1)
    assert result.exit_code == 2
    assert "is not UTF-8" in result.stderr
    assert sorted(folder.iterdir()) == before


# ------------------------------------------------------------------ resuming


def test_a_run_is_resumed_from_any_folder_with_its_own_settings(folder, monkeypatch):
    run("text.txt", "-o", "run", *TINY, "--steps", 2, "--held-out", 0.2)
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    result = run("--resume", folder / "run", "--steps", 5)
    assert result.exit_code == 0, result.output
    assert (read_state(folder / "run").step, read_state(folder / "run").config.batch_size) == (5, 2)
    assert f"{folder / 'run'}: step 2 of 5" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--lr", "1"], "this run has lr=0.003"), (["--position", "rope"], "position belongs to the run"),
     (["other.txt"], "text.sources belongs to the run"), (["--set", "model.d_ff=8"], "model belongs to the run"),
     (["-o", "other"], "leave --output out")],
)  # fmt: skip
def test_what_would_make_it_another_run_is_refused(arguments, message):
    run("text.txt", "-o", "run", *TINY, "--steps", 1)
    result = run("--resume", "run", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_text_that_has_changed_is_refused(folder):
    run("text.txt", "-o", "run", *TINY, "--steps", 1)
    (folder / "text.txt").write_text("something else entirely\n" * 50)
    result = run("--resume", "run", "--steps", 2)
    assert result.exit_code == 3
    assert "not the training data" in result.stderr


def test_a_run_of_the_library_says_how_it_is_resumed(folder):
    run("text.txt", "-o", "run", *TINY, "--steps", 1)
    state = folder / "run" / "training" / "step-1" / "state.json"
    state.write_text(json.dumps(json.loads(state.read_text()) | {"origin": {}}))
    result = run("--resume", "run")
    assert result.exit_code == 3
    assert "gnomon.train.resume" in result.stderr


# ------------------------------------------------------------------ what cannot be right


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nowhere.txt"], 3, "nowhere.txt"),
        (["empty.txt"], 3, "no text in empty.txt"),
        (["binary.bin"], 3, "not a text file"),
        (["text.txt", "--length", "100000"], 3, "tokens"),
        (["text.txt", "--length", "100", "--set", "model.max_positions=64"], 2, "hold 64 rows"),
        (["text.txt", "--length", "99999999999"], 2, "a batch of 2 rows of"),
        (["text.txt", "--length", "99999999999", "--position", "rope"], 2, "a batch of 2 rows of"),
        (
            ["text.txt", "--batch-size", "99999999999"],
            2,
            "more than there is here: choose a smaller length or batch_size",
        ),
        (["text.txt", "--set", "model.d_model=1000000"], 2, "a model of at least"),
        (["text.txt", "--steps", "9" * 5000], 2, "is not a valid integer"),
        (["text.txt", "--set", "train.steps=" + "9" * 5000], 2, "train.steps: expected a whole number"),
        (["text.txt", "--set", "train.steps=9999999999999999"], 2, "steps must be a whole number between 1 and 2**40"),
        (["text.txt", "--set", "train.seed=-1"], 2, "seed must be a whole number at least 0"),
        (["text.txt", "--set", "position={name={a={b=1}}}"], 2, "the name of a position encoding must be a text"),
        (["text.txt", "--set", "position.name=[[1]]"], 2, "the name of a position encoding must be a text"),
        (["text.txt", "--length", "100000", "--position", "rope"], 3, "tokens"),
        (["text.txt", "--length", "60", "--held-out", "0.01"], 3, "of what is held out for evaluation, the text has"),
        (["text.txt", "--preset", "mini-gtp"], 2, "did you mean 'mini-gpt'"),
        (["text.txt", "--position", "ropee"], 2, "did you mean 'rope'"),
        (["text.txt", "--set", "position.bsae=3", "--position", "rope"], 2, "did you mean 'base'"),
        (["text.txt", "--set", "model.d_modle=3"], 2, "did you mean 'd_model'"),
        (["text.txt", "--set", "model.d_model=wide"], 2, "d_model must be a whole number"),
        (["text.txt", "--set", "model.n_heads=3"], 2, "n_heads=3"),
        (["text.txt", "--set", "train.step=3"], 2, "did you mean 'train.steps'"),
        (["text.txt", "--steps", "0"], 2, "steps must be a whole number between 1 and"),
        (["text.txt", "--lr", "nan"], 2, "lr must be a number above 0"),
        (["text.txt", "--tokenizer", "nowhere.json"], 3, "there is no tokenizer"),
        (["text.txt", "--tokenizer", "text.txt"], 3, "text.txt"),
        (["text.txt", "--tokenizer", "bpe", "--vocab-size", "9"], 2, "vocab_size is 9"),
        (["text.txt", "--set", "model.vocab_size=100"], 2, "257 different tokens"),
        (["text.txt", "--held-out", "2"], 2, "held_out is 2"),
        (["--resume", "nowhere"], 3, "nowhere"),
    ],
)
def test_bad_input_gets_one_line_and_leaves_nothing_behind(folder, arguments, code, message):
    (folder / "empty.txt").write_text("")
    (folder / "binary.bin").write_bytes(b"\0\1\2")
    before = sorted(folder.rglob("*"))
    options = TINY if "--resume" not in arguments else []
    result = run(*options, *arguments, *(["-o", "run"] if options else []), "--quiet")
    assert result.exit_code == code, result.output
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert len(result.stderr) < 900
    assert sorted(folder.rglob("*")) == before


# ------------------------------------------------------------------ interrupted


def started(*arguments: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "gnomon", "train", *map(str, arguments)],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def wait_for_step(folder: Path, step: int) -> None:
    give_up = time.monotonic() + 90
    while not any(line["step"] >= step for line in read_metrics(folder / "metrics.jsonl")):
        assert time.monotonic() < give_up, "training did not get there"
        time.sleep(0.02)


def logged(folder: Path) -> list[dict[str, float]]:
    lines = read_metrics(folder / "metrics.jsonl")
    return [{key: value for key, value in line.items() if key != "tokens_per_second"} for line in lines]


@pytest.mark.slow
def test_a_run_resumes_as_if_nothing_happened_after_ctrl_c_or_a_kill(folder):
    ran = [
        *TINY, "--steps", 150, "--threads", 1, "--set", "train.sample_every=none", "--set", "train.eval_every=none",
        "--set", "train.save_every=40",
    ]  # fmt: skip
    assert run("text.txt", "-o", "whole", *ran).exit_code == 0

    process = started("text.txt", "-o", "run", *ran)
    wait_for_step(folder / "run", 5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=90)
    stopped = read_state("run").step
    assert process.returncode == 130, err
    assert out == ""
    assert f"step {stopped} is saved" in err
    assert "go on with: gnomon train --resume run" in err
    assert 5 <= stopped < 150

    process = started("--resume", "run", "--threads", 1)
    wait_for_step(folder / "run", min(150, stopped + 45))
    process.kill()
    process.communicate(timeout=90)
    assert read_state("run").step > stopped

    assert run("--resume", "run", "--threads", 1).exit_code == 0
    assert logged(folder / "run") == logged(folder / "whole")
    for name in ("model.safetensors", "training/step-150/optimizer.safetensors", "config.json", "tokenizer.json"):
        assert (folder / "run" / name).read_bytes() == (folder / "whole" / name).read_bytes(), name


@pytest.mark.slow
def test_a_second_training_in_the_folder_is_refused_and_sigterm_saves_the_first(folder):
    endless = [*TINY, "--steps", 10**6, "--threads", 1, "--set", "train.eval_every=none"]
    process = started("text.txt", "-o", "run", *endless)
    wait_for_step(folder / "run", 2)
    for arguments in (["text.txt", "-o", "run", *TINY], ["--resume", "run"]):
        refused = run(*arguments)
        assert refused.exit_code == 3
        assert f"process {process.pid} on" in refused.stderr
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=90)
    assert (process.returncode, out) == (143, ""), err
    assert "SIGTERM: finishing this step, then saving" in err
    assert err.endswith("go on with: gnomon train --resume run\ngnomon: ended by SIGTERM\n")
    assert "\r" not in err  # no progress bar goes into a pipe
    stopped = read_state("run").step
    assert run("--resume", "run", "--steps", stopped + 1).exit_code == 0


# ------------------------------------------------------------------ what a state says

ORIGINS = [
    {}, {"task": None}, {"task": []}, {"task": "text"}, {"text": "rope"}, {"text": []}, {"text": {"sources": [[None]]}},
    {"text": {"sources": "text.txt"}}, {"text": {"held_out": "x"}}, {"text": {"text_key": 3}}, {"text": {"more": 1}},
]  # fmt: skip


@pytest.mark.parametrize("origin", ORIGINS)
def test_an_origin_that_makes_no_sense_is_one_line(folder, origin):
    run("text.txt", "-o", "run", *TINY, "--steps", 1, "--quiet")
    state = folder / "run" / "training" / "step-1" / "state.json"
    whole = json.loads(state.read_text())
    state.write_text(json.dumps(whole | {"origin": {"task": "text", **origin} if "text" in origin else origin}))
    result = run("--resume", "run")
    assert result.exit_code == 3
    assert result.stderr.count("\n") == 1
    assert "is damaged: text: " in result.stderr or "does not say what it was trained on" in result.stderr


# ------------------------------------------------------------------ other tasks

NUMBERS = [
    "--task", "numbers", "--set", "numbers.limit=400", "--set", "numbers.count=6", "--batch-size", "8", "--set",
    "model.d_model=16", "--set", "model.n_layers=1", "--set", "model.n_heads=2", "--quiet",
]  # fmt: skip


@pytest.mark.slow
def test_a_task_has_defaults_a_folder_and_a_hint_of_its_own():
    result = run(*NUMBERS, "--source", "pt", "--target", "digits", "--steps", 1)
    assert result.exit_code == 0, result.output
    assert "exact match uniform" in result.stdout
    assert "gnomon generate runs/numbers-pt-digits --source 'duzentos e quarenta e um' --strategy beam" in result.stdout
    config = load("runs/numbers-pt-digits").config
    assert (config.architecture, config.norm, config.d_model) == ("encoder-decoder", "rmsnorm", 16)


@pytest.mark.slow
def test_a_task_is_chosen_in_the_file(folder):
    (folder / "task.toml").write_text('task = "numbers"\n[numbers]\nsource = "en"\ntarget = "es"\n')
    assert run("-c", "task.toml", *NUMBERS[2:], "-o", "run", "--steps", 1).exit_code == 0
    origin = read_state("run").origin
    assert (origin["task"], origin["numbers"]["source"], origin["numbers"]["target"]) == ("numbers", "en", "es")


@pytest.mark.slow
def test_a_resumed_translation_is_the_uninterrupted_one(monkeypatch):
    assert run(*NUMBERS, "-o", "whole", "--steps", 6).exit_code == 0
    original = Run.step

    def step(self, number, *stop):
        if number == 3 and self.folder == Path("run"):
            signal.raise_signal(signal.SIGINT)
        return original(self, number, *stop)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "step", step)
        assert run(*NUMBERS, "-o", "run", "--steps", 6).exit_code == 130
    assert read_state("run").step == 4
    assert run("--resume", "run", "--quiet").exit_code == 0
    assert (Path("run") / "model.safetensors").read_bytes() == (Path("whole") / "model.safetensors").read_bytes()
    assert logged(Path("run")) == logged(Path("whole"))


def test_the_tasks_are_listed():
    listed = run("--task", "list").stdout
    assert re.search(r"^numbers +Translate numbers", listed, re.MULTILINE)
    assert re.search(r"^text +Guess", listed, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--task", "number"], 2, "did you mean 'numbers'"),
        (["text.txt", "--task", "numbers"], 2, "makes its own data: leave the sources out"),
        (
            ["--task", "numbers", "--source", "fr"],
            2,
            "error: flag numbers.source: expected 'en' or 'es' or 'pt' or 'pt-br' or 'digits', given 'fr'",
        ),
        (["--task", "numbers", "--source", "en"], 2, "source and target are both en"),
        (["--task", "numbers", "--preset", "mini-gpt"], 2, "this model is decoder-only"),
        (["--task", "pairs"], 2, "give a file of pairs"),
        (["text.txt", "--task", "pairs"], 3, "text.txt, line 1: expected a source, one tab"),
        (["text.txt", "--source", "es"], 2, "unknown setting in flag text.source"),
    ],
)
def test_what_a_task_cannot_do_gets_one_line_and_leaves_nothing_behind(folder, arguments, code, message):
    result = run(*arguments, "-o", "run", "--quiet", "--steps", 1)
    assert result.exit_code == code, result.output
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (folder / "run").exists()


MINE = """
from dataclasses import dataclass
from gnomon.tasks import Kind
from gnomon.tasks.translation import Translation
from gnomon.train import TrainConfig
from gnomon.train.measure import share


@dataclass(frozen=True)
class ReversalKind(Kind):
    name, about = "reversal", "Write a word backwards."
    default_model = {"architecture": "encoder-decoder", "d_model": 16, "n_layers": 1, "n_heads": 2}
    default_tokenizer = "characters"
    default_train = TrainConfig(steps=2, batch_size=4)
    letters: str = "abc"

    def texts(self):
        return [self.letters]

    def task(self, tokenizer, config, quiet=True):
        return Reversal(self, tokenizer, config)


class Reversal(Translation):
    name = "reversal"

    def __init__(self, kind, tokenizer, config):
        super().__init__(tokenizer, config)
        self.letters, self.fingerprint = kind.letters, kind.letters

    fingerprint = ""

    def draw(self, number):
        word = self.letters[number % len(self.letters):] + self.letters
        return [(word, word[::-1])] * self.config.batch_size

    def held_out(self):
        return {"words": [(self.letters, self.letters[::-1])]}

    def score(self, name, answers, references):
        return {"exact match": share(sum(map(str.__eq__, answers, references)), len(answers))}
"""


def test_a_task_of_your_own_is_trained_resumed_and_measured_by_its_module(folder, monkeypatch):
    monkeypatch.setattr("gnomon.tasks.kind._KINDS", dict(kind_module._KINDS))
    monkeypatch.setattr(sys, "path", list(sys.path))
    (folder / "my_task.py").write_text(MINE)
    mine = ["--import", "my_task"]
    result = run("--task", "reversal", *mine, "--set", "reversal.letters=xyzw", "-o", "run", "--quiet")
    assert result.exit_code == 0, result.output
    assert "xyzw -> " in result.stdout
    assert "gnomon eval run --import my_task" in result.stdout
    assert run("--resume", "run", *mine, "--steps", 3, "--quiet").exit_code == 0
    measured = CliRunner().invoke(cli, ["eval", "run", *mine, "--json", "--quiet"])
    assert json.loads(measured.stdout)["task"] == "reversal"
    assert read_state("run").origin["reversal"] == {"letters": "xyzw"}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_small_number_translator_is_trained_asked_and_measured(folder):
    """From the command to held-out numbers that are right to the letter."""
    small = ["--set", "model.d_model=64", "--set", "numbers.limit=2000", "--set", "numbers.count=100"]
    result = run("--task", "numbers", *small, "--steps", 550, "-o", "run", "--quiet")
    assert result.exit_code == 0, result.output
    measured = CliRunner().invoke(cli, ["eval", "run", "--json", "--quiet"])
    found = json.loads(measured.stdout)
    assert found["exact_match_uniform"] >= 0.98
    assert found["exact_match_log_uniform"] >= 0.95
    asked = ["generate", "run", "--source", "doscientos cuarenta y uno", "--strategy", "beam"]
    generated = CliRunner().invoke(cli, asked)
    assert "two hundred and forty-one" in generated.stdout
    drawn = CliRunner().invoke(
        cli, ["plot", "alignment", "--run", "run", "--source", "doscientos cuarenta y uno", "-o", "a.png"]
    )
    assert drawn.exit_code == 0, drawn.output
    assert Path("a.png").exists()


# ------------------------------------------------------------------ from a model


def test_a_model_is_trained_further_with_its_own_tokenizer(tmp_path):
    """As after a retrofit: the first loss is the old model's, not that of new weights."""
    text = tmp_path / "text.txt"
    text.write_text("the cat sat on the mat. " * 400)
    small = ["--set", "model.d_model=32", "--set", "model.n_layers=1", "--length", "16", "-q", "--json"]
    first = CliRunner().invoke(cli, ["train", str(text), "-o", str(tmp_path / "a"), "--steps", "60", *small])
    assert first.exit_code == 0, first.output
    further = ["train", str(text), "--from", str(tmp_path / "a"), "-o", str(tmp_path / "b"), "--length", "16", "-q"]
    second = CliRunner().invoke(cli, [*further, "--steps", "1", "--lr", "1e-9", "--json"])
    assert second.exit_code == 0, second.output
    assert load(tmp_path / "b").config == load(tmp_path / "a").config
    assert json.loads(second.stdout)["loss"] == pytest.approx(json.loads(first.stdout)["loss"], abs=1e-4)
    assert (tmp_path / "b/tokenizer.json").read_bytes() == (tmp_path / "a/tokenizer.json").read_bytes()
    for wrong in (
        ["--preset", "mini-gpt"],
        ["--position", "rope"],
        ["--set", "model.d_model=8"],
        ["--tokenizer", "bytes"],
    ):
        refused = CliRunner().invoke(cli, [*further[:-4], "-o", str(tmp_path / "c"), *wrong])
        assert refused.exit_code == 2
        assert "built already" in refused.stderr


@pytest.mark.parametrize(("position", "length", "after"), [("rope", 24, 24), ("rope", 8, 16), ("learned", 8, 16)])
def test_a_model_that_is_trained_further_on_longer_rows_was_trained_to_their_length(position, length, after):
    model = gn.DecoderOnly(40, 16, 1, 2, position=position, max_positions=16)
    lengthen(model, length)
    assert model.config.max_positions == after


def test_rows_longer_than_the_table_of_the_model_they_are_to_train_are_an_error():
    model = gn.DecoderOnly(40, 16, 1, 2, position="learned", max_positions=16)
    with pytest.raises(gn.BadValue, match="16"):
        lengthen(model, 24)
    assert model.config.max_positions == 16
