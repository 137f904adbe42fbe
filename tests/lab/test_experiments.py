"""The experiment as a whole: what it takes, what it leaves behind, how it goes on after an interruption."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import gnomon as gn
from gnomon.data import Corpus, lock_folder
from gnomon.errors import BadInput, BadValue
from gnomon.lab import Recipe, Size, extrapolation, worker
from gnomon.lab.cell import from_dict
from gnomon.lab.executor_choice import executor_for
from gnomon.lab.executors import Serial, run_cells
from gnomon.lab.experiments import experiment
from gnomon.lab.prepare import claim, holds_another, prepare
from gnomon.lab.store import Store
from gnomon.lab.summary import facts
from gnomon.lab.trial import TrialResult
from gnomon.positions import PositionEncoding

MINE = '''
from gnomon.positions import PositionEncoding

class Slow(PositionEncoding):
    """A bias that fades with distance, faster in later heads."""
    name = "slow"
    acts = "score"
    relative = True
    extrapolation = "never measured"

    def __init__(self, n_heads, rate=0.1):
        super().__init__()
        self.n_heads, self.rate = n_heads, rate

    def heads(self):
        return self.n_heads

    def bias(self, h, q, k):
        return -self.rate * (h + 1) * (q - k).abs()
'''


@pytest.fixture
def my_module(tmp_path, monkeypatch):
    """A module of a user's on the path, for this process and those it starts."""
    (tmp_path / "my_lab_encoding.py").write_text(MINE)
    monkeypatch.syspath_prepend(str(tmp_path))
    import my_lab_encoding

    yield my_lab_encoding
    from gnomon.positions import base

    base._REGISTRY.pop("slow")
    del sys.modules["my_lab_encoding"]


def identical(one: TrialResult, other: TrialResult) -> bool:
    """Whether all numbers that are not times agree to the last bit."""
    quiet = {"train_seconds": 0.0, "measure_seconds": 0.0, "step_cpu_seconds": 0.0}
    return replace(one, **quiet) == replace(other, **quiet)


def kept(folder: Path) -> TrialResult:
    """What was measured of the model in a folder."""
    return TrialResult.from_result(json.loads((folder / "measured.json").read_text())["result"])


# ------------------------------------------------------------------ same numbers


@pytest.mark.slow
def test_the_same_seed_gives_the_same_numbers_in_workers_and_here(settings, corpus, folder, report, tmp_path):
    """Two processes beside each other, after the fixture's run in this one: every number agrees to the last bit."""
    two = replace(settings, positions=("rope", "t5"))
    experiment(two, corpus, tmp_path, workers=2)
    for trial in two.trials():
        assert identical(kept(tmp_path / trial.folder), kept(folder / trial.folder))
        weights = [(path / trial.folder / "model.safetensors").read_bytes() for path in (tmp_path, folder)]
        assert weights[0] == weights[1]


def test_another_seed_gives_other_numbers_and_seeds_are_pooled(settings, corpus, report):
    two = experiment(replace(settings, positions=("rope",), seeds=2), corpus, workers=1)
    [row] = two.rows
    assert row.by_seed[0] == [bits.value for bits in report.row("rope").bits]
    assert row.by_seed[1] != row.by_seed[0]
    assert row.bits[0].value == pytest.approx(sum(bits[0] for bits in row.by_seed) / 2)
    assert f"{row.by_seed[1][0]:.3f} and {row.by_seed[1][-1]:.3f}" in " ".join(facts(two, row))


def test_threads_of_this_process_are_left_as_they_were(settings, corpus, tmp_path):
    before = torch.get_num_threads()
    experiment(replace(settings, positions=("none",), threads=before + 1), corpus, tmp_path, workers=1)
    assert torch.get_num_threads() == before


# ------------------------------------------------------------------ one's own


@pytest.mark.slow
def test_encodings_of_ones_own_are_measured_like_all_others(my_module, settings, corpus, tmp_path):
    """By name, in worker processes, with options: the class is defined outside the package."""
    spec = gn.positions.get("slow", rate=0.5)
    report = extrapolation(
        ["slow", spec],
        corpus=corpus,
        train_length=8,
        factors=(1, 2),
        steps=2,
        model=settings.model,
        folder=tmp_path / "lab",
        workers=2,
    )
    assert [row.label for row in report.rows] == ["slow", "slow(rate=0.5)"]
    assert report.rows[0].bits != report.rows[1].bits
    assert report.rows[0].extrapolation == "never measured"
    assert "slow" in report.table()


@pytest.mark.slow
def test_every_worker_knows_every_encoding_not_only_the_one_it_trains(my_module, settings, corpus, tmp_path):
    """Each worker reads settings that name all encodings; here one of them trains none of the user's."""
    lab = prepare(replace(settings, positions=("slow", "alibi", "rope")), corpus, tmp_path / "lab", quiet=True)
    done = [done.cell.label for done in run_cells(lab.cells(), Store(lab.folder), executor_for("processes", 2))]
    assert sorted(done) == ["alibi", "rope", "slow"]


def test_modules_that_were_imported_reach_every_job(my_module, settings, corpus, tmp_path):
    """An encoding that a module makes by a function of another one is known only after both were imported."""
    two = replace(settings, positions=("slow", "alibi"))
    cells = prepare(two, corpus, tmp_path / "lab", True, ("json", "my_lab_encoding")).cells()
    assert [cell.modules for cell in cells] == [("json", "my_lab_encoding")] * 2


def test_modules_that_were_imported_do_not_make_another_cell(settings, corpus, tmp_path):
    one, other = (prepare(settings, corpus, tmp_path, True, modules).cells()[0] for modules in ((), ("json",)))
    assert one != other
    assert one.key == other.key


def test_a_module_that_workers_cannot_import_is_named(settings, corpus, tmp_path):
    class Local(PositionEncoding):
        """Defined inside a test, where no other process finds it."""

        name = "local to a test"

    Local.__module__ = "no_such_module_anywhere"
    try:
        [cell] = prepare(replace(settings, positions=("local to a test",)), corpus, tmp_path, quiet=True).cells()
        error = worker.error_of(served(cell, tmp_path))
        assert isinstance(error, BadValue)
        assert re.search("no_such_module_anywhere.*one worker", str(error))
    finally:
        from gnomon.positions import base

        base._REGISTRY.pop("local to a test")


def test_a_corpus_may_be_files(settings, corpus, tmp_path):
    for i, document in enumerate(corpus.documents):
        (tmp_path / f"{i:02}.txt").write_text(document.text)
    report = extrapolation(
        ["none"], corpus=tmp_path, train_length=8, factors=(1, 2), steps=1, model=settings.model, workers=1
    )
    assert report.about["corpus"]["sha256"] == Corpus.open(tmp_path).sha256


def test_position_may_be_concatenated(settings, corpus):
    """The two ways side by side; the second has a projection of its own and the same beginning otherwise."""
    grid = replace(settings, positions=("sinusoidal",), combine=("add", "concat"))
    report = experiment(grid, corpus, workers=1)
    added, beside = report.rows
    assert (added.label, beside.label) == ("sinusoidal", "sinusoidal concat")
    assert beside.position_parameters == (16 + 32) * 16 + 16
    assert report.same_start
    assert added.bits != beside.bits


# ------------------------------------------------------------------ text that does not do


def test_text_that_is_too_short_is_refused_before_anything_is_trained(settings, tmp_path):
    texts = ["short", "and shorter", "a longer text, which is all the same too short for it"]
    with pytest.raises(BadInput, match="no held-out document has the 33 tokens"):
        experiment(settings, Corpus.from_texts(texts), tmp_path / "lab", workers=1)
    assert not any((tmp_path / "lab").glob("*/"))


# ------------------------------------------------------------------ folders


def test_a_folder_holds_one_experiment(settings, corpus, folder, report):
    with pytest.raises(BadValue, match="train.steps 4 there, 5 here"):
        experiment(replace(settings, train=replace(settings.train, steps=5)), corpus, folder)
    with pytest.raises(BadValue, match="corpus"):
        experiment(settings, Corpus(corpus.documents[:-1], "fewer"), folder)
    assert holds_another(folder, replace(settings, train_length=12))
    assert not holds_another(folder, replace(settings, positions=("rope", "alibi"), seeds=3))


def test_a_folder_with_other_things_in_it_is_left_alone(settings, corpus, tmp_path):
    (tmp_path / "thesis.txt").write_text("all of it")
    with pytest.raises(BadValue, match="not empty"):
        experiment(settings, corpus, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    assert holds_another(tmp_path, settings)
    assert not holds_another(tmp_path / "new", settings)


def test_an_experiment_has_its_folder_to_itself(settings, corpus, tmp_path):
    refused = []

    def work():
        try:
            experiment(settings, corpus, tmp_path / "x", workers=1)
        except BadInput as error:
            refused.append(str(error))

    with lock_folder(tmp_path / "x"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert "has been writing" in refused[0]
    assert not (tmp_path / "x").exists()


def test_an_experiment_that_cannot_be_does_not_take_its_folder(settings, corpus, tmp_path):
    with pytest.raises(BadInput, match="no held-out document has"):
        prepare(replace(settings, train_length=settings.train_length * 100, vocab_size=300), corpus, tmp_path, True)
    prepare(settings, corpus, tmp_path, True)


def test_what_a_killed_experiment_left_is_no_other_experiment(settings, corpus, tmp_path):
    (tmp_path / ".lock").touch()
    assert not holds_another(tmp_path, settings)
    claim(tmp_path, settings, corpus)
    assert holds_another(tmp_path, replace(settings, train_length=settings.train_length + 1))


def test_going_on_trains_only_what_is_missing(settings, corpus, tmp_path, monkeypatch):
    two = replace(settings, positions=("rope", "none"))
    first = experiment(replace(two, positions=("rope",)), corpus, tmp_path, workers=1)
    ran, run = [], Serial.run

    def noted(executor, cells, store, hear):
        ran.extend(cell.label for cell in cells)
        return run(executor, cells, store, hear)

    monkeypatch.setattr(Serial, "run", noted)
    whole = experiment(two, corpus, tmp_path, workers=1, resume=True)
    assert ran == ["none"]
    assert whole.about["reused"] == ["rope"]
    assert whole.row("rope").bits == first.row("rope").bits
    ran.clear()
    experiment(two, corpus, tmp_path, workers=1)  # without resume all of it runs again
    assert ran == ["rope", "none"]


def test_changed_code_of_an_encoding_is_another_job(my_module, settings, corpus, tmp_path, monkeypatch):
    def identity():
        [cell] = prepare(replace(settings, positions=("slow",)), corpus, tmp_path / "lab", quiet=True).cells()
        return cell.key

    before = identity()
    monkeypatch.setattr("inspect.getsource", lambda cls: "something else")
    assert identity() != before


def test_a_trial_is_plain_data(settings, corpus, tmp_path):
    [cell] = prepare(replace(settings, positions=("rope(base=200)",)), corpus, tmp_path, quiet=True).cells()
    assert from_dict(json.loads(json.dumps(cell.to_dict()))) == cell


# ------------------------------------------------------------------ workers


# No main guard, and no file that could be imported: starting processes needs neither.
SCRIPT = """
import sys
import threading
from gnomon.cli.main import main
sys.argv = ["gnomon", "lab", *sys.argv[1:]]
main()
"""


@pytest.fixture
def endless(corpus, tmp_path):
    """A command with two workers, in a process group of its own, that are under way and will not come to an end."""
    texts = tmp_path / "texts"
    texts.mkdir()
    for i, document in enumerate(corpus.documents):
        (texts / f"{i:02}.txt").write_text(document.text)
    options = "--positions none,alibi,rope --length 8 --factors 1,2 --vocab-size 300 --held-out 0.3 --steps 1000000 "
    options += "--workers 2 --set model.d_model=16 --set model.n_layers=1 --set model.n_heads=2"
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *options.split(), "-o", str(tmp_path / "lab"), str(texts)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    group = os.getpgid(process.pid)
    try:
        deadline = time.monotonic() + 90
        while members(group) < 3 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert members(group) == 3
        time.sleep(2)
        yield process
    finally:
        if members(group):
            os.killpg(group, signal.SIGKILL)
        process.wait()
        process.stderr.close()


def members(group: int) -> int:
    """Living processes of a group."""
    listed = subprocess.run(["ps", "-eo", "pgid=,stat="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    return sum(int(pgid) == group and not state.startswith("Z") for pgid, state in rows)


@pytest.mark.slow
def test_ctrl_c_ends_all_processes_and_says_how_to_go_on(endless, tmp_path):
    group = os.getpgid(endless.pid)
    os.killpg(group, signal.SIGINT)  # as a terminal does it: to all of them
    _, errors = endless.communicate(timeout=60)
    assert endless.returncode == 130
    assert "--resume goes on" in errors
    assert "Traceback" not in errors
    assert members(group) == 0
    assert json.loads((tmp_path / "lab" / "experiment.json").read_text())["settings"]["train"]["steps"] == 1_000_000
    assert not list((tmp_path / "lab").glob("**/.*"))  # no drafts


@pytest.mark.slow
def test_workers_end_when_their_parent_is_killed(endless):
    group = os.getpgid(endless.pid)
    endless.kill()
    deadline = time.monotonic() + 60
    while members(group) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert members(group) == 0


def test_what_went_wrong_in_a_worker_comes_up_in_its_kind(settings, corpus, tmp_path):
    """A learning rate that overflows: the training step says so in the worker, the caller hears it."""
    wild = replace(settings, positions=("rope", "none"), train=Recipe(steps=50, batch_size=2, warmup=0, lr=1e30))
    event = served(prepare(wild, corpus, tmp_path, quiet=True).cells()[0], tmp_path)
    assert isinstance(worker.error_of(event), BadValue)
    assert "learning rate" in event["message"]


def served(cell, folder):
    """The last event of a worker that runs this cell, which here is no process of its own."""
    events = []
    worker.serve(json.loads(json.dumps({**cell.to_dict(), "folder": str(folder)})), events.append)
    return events[-1]


def test_a_fault_of_our_own_is_told_too(settings, corpus, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr("gnomon.lab.trial.run", lambda cell, folder, tell: 1 / 0)
    [cell, *_] = prepare(settings, corpus, tmp_path, quiet=True).cells()
    error = worker.error_of(served(cell, tmp_path))
    assert type(error) is RuntimeError
    assert "division by zero" in str(error)
    assert "Traceback" in capfd.readouterr().err


def test_sizes_of_the_model_are_those_given(settings, corpus, tmp_path):
    wide = Size(d_model=24, n_layers=1, n_heads=3, d_ff=40, activation="relu", norm="rmsnorm", init_std=0.1)
    experiment(replace(settings, positions=("rope",), model=wide), corpus, tmp_path, workers=1)
    config = json.loads((Path(tmp_path) / "rope" / "config.json").read_text())["model"]
    assert {name: config[name] for name in ("d_model", "n_layers", "n_heads", "d_ff", "activation", "norm")} == {
        "d_model": 24,
        "n_layers": 1,
        "n_heads": 3,
        "d_ff": 40,
        "activation": "relu",
        "norm": "rmsnorm",
    }
