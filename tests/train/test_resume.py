"""Stopping and going on is not stopping: the same weights, losses and rates, bit for bit, from wherever it stopped."""

import errno
import io
import os
import shutil
import signal
import sys
import threading
from dataclasses import replace

import pytest
import torch

from gnomon.checkpoints import load, save_model
from gnomon.checkpoints.native import read_tensors
from gnomon.data import TokenStore
from gnomon.errors import BadInput, BadValue, Terminated
from gnomon.positions import get
from gnomon.train import adamw, read_metrics, read_state, resume, train
from gnomon.train.run import Run
from gnomon.train.state import restore, save_run

pytestmark = pytest.mark.usefixtures("no_pictures")

DROPOUT = {"dropout": 0.1, "position": "learned"}


def weights(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def numbers(folder):
    """What a run logged, without the speed."""
    lines = read_metrics(folder / "metrics.jsonl")
    return [{key: value for key, value in line.items() if key != "tokens_per_second"} for line in lines]


@pytest.fixture
def ten_windows(text) -> TokenStore:
    """A stream of eleven windows of eight: each pass takes ten, five batches of two."""
    return replace(text.train, tokens=text.train.tokens[: 11 * 8 + 1])


def press_ctrl_c_in_step(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Run.step

    pressed = []

    def step(self, n, *stop):
        if n == number and not pressed:
            pressed.append(n)
            signal.raise_signal(signal.SIGINT)
        return original(self, n, *stop)

    monkeypatch.setattr(Run, "step", step)


@pytest.mark.parametrize(
    ("stop", "pieces"), [(5, 1), (3, 2), *(pytest.param(n, 1, marks=pytest.mark.slow) for n in (1, 3, 7, 11))]
)
def test_a_run_stopped_and_resumed_is_the_uninterrupted_run(
    text, ten_windows, build, config, tmp_path, monkeypatch, stop, pieces
):
    ran = config(eval_every=5, sample_every=6, accumulate=pieces)
    whole = build(**DROPOUT)
    train(whole, text.task(ran, ten_windows), ran, tmp_path / "whole", quiet=True)
    press_ctrl_c_in_step(stop - 1, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        train(build(**DROPOUT), text.task(ran, ten_windows), ran, tmp_path / "stopped", quiet=True)
    assert read_state(tmp_path / "stopped").step == stop - (pieces > 1)  # a step of several pieces is given up
    torch.manual_seed(999)  # a new process has another random state
    resume(tmp_path / "stopped", text.task(config(), ten_windows), quiet=True)
    assert weights(load(tmp_path / "stopped")).equal(weights(whole))
    assert numbers(tmp_path / "stopped") == numbers(tmp_path / "whole")
    assert read_state(tmp_path / "stopped") == read_state(tmp_path / "whole")


@pytest.mark.parametrize("positions", ["randomized(32)", "cape"])
def test_a_resumed_run_draws_the_same_position_ids(text, ten_windows, build, config, tmp_path, monkeypatch, positions):
    position = get("sinusoidal", positions=positions)
    whole, plain = build(position=position), build(position="sinusoidal")
    for model, name in ((whole, "whole"), (plain, "plain")):
        train(model, text.task(config(), ten_windows), config(), tmp_path / name, quiet=True)
    press_ctrl_c_in_step(2, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        train(build(position=position), text.task(config(), ten_windows), config(), tmp_path / "stopped", quiet=True)
    torch.manual_seed(999)  # a new process has another random state
    resume(tmp_path / "stopped", text.task(config(), ten_windows), quiet=True)
    assert weights(load(tmp_path / "stopped")).equal(weights(whole))
    assert not weights(whole).equal(weights(plain))


def test_what_was_logged_after_the_last_save_is_not_logged_twice(text, build, config, tmp_path):
    train(build(), text.task(config()), config(steps=3), tmp_path / "run", quiet=True)
    with open(tmp_path / "run" / "metrics.jsonl", "a") as file:
        file.write('{"step": 4, "loss": 9.0}\n{"step": 5, "lo')  # then came the kill
    resume(tmp_path / "run", text.task(config()), changes={"steps": 5}, quiet=True)
    losses = [(line["step"], line["loss"]) for line in numbers(tmp_path / "run") if "loss" in line]
    assert [step for step, _ in losses] == [1, 2, 3, 4, 5]
    assert losses[3][1] != 9.0


def test_a_run_can_be_resumed_from_its_first_moment(text, build, config, tmp_path, monkeypatch):
    def power_cut(self, number, *stop):
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(Run, "step", power_cut)
        with pytest.raises(SystemExit):
            train(build(**DROPOUT), text.task(config()), config(steps=2), tmp_path / "cut", quiet=True)
    assert read_state(tmp_path / "cut").step == 0
    resume(tmp_path / "cut", text.task(config()), quiet=True)
    whole = build(**DROPOUT)
    train(whole, text.task(config()), config(steps=2), tmp_path / "whole", quiet=True)
    assert weights(load(tmp_path / "cut")).equal(weights(whole))


def test_the_optimizer_goes_on_where_it_was(text, build, config, tmp_path):
    train(build(), text.task(config()), config(steps=3), tmp_path / "run", quiet=True)
    tensors, _ = read_tensors(tmp_path / "run" / "training" / "step-3" / "optimizer.safetensors")
    names = {name for name, _ in build().named_parameters()}
    assert set(tensors) == {f"{name}.{key}" for name in names for key in ("step", "exp_avg", "exp_avg_sq")}
    assert {float(tensors[f"{name}.step"]) for name in names} == {3.0}
    resume(tmp_path / "run", text.task(config()), changes={"steps": 5}, quiet=True)
    tensors, _ = read_tensors(tmp_path / "run" / "training" / "step-5" / "optimizer.safetensors")
    assert {float(tensors[f"{name}.step"]) for name in names} == {5.0}


def test_a_compiled_or_wrapped_model_resumes_a_plain_one_and_the_reverse(text, build, config, tmp_path):
    class DataParallelLike(torch.nn.Module):
        def __init__(self, module):
            super().__init__()
            self.module = module

        def forward(self, *args):
            return self.module(*args)

    for first in (False, True):
        folder = tmp_path / f"wrapped first {first}"
        model = DataParallelLike(build()) if first else build()
        train(model, text.task(config()), config(steps=2), folder, quiet=True)
        other = build() if first else DataParallelLike(build())
        tensors, _ = read_tensors(folder / "model.safetensors")
        assert not any(name.startswith("module.") for name in tensors)
        resume(folder, text.task(config()), model=other, changes={"steps": 3}, quiet=True)
        assert weights(load(folder)).equal(weights(other))
        assert read_state(folder).step == 3


def test_a_tie_is_still_a_tie_after_resuming(text, build, config, tmp_path):
    train(build(), text.task(config()), config(steps=1), tmp_path / "run", quiet=True)
    model = build()
    resume(tmp_path / "run", text.task(config()), model=model, changes={"steps": 3}, quiet=True)
    assert model.head.weight is model.input.tokens.weight
    assert "head.weight" not in read_tensors(tmp_path / "run" / "model.safetensors")[0]
    again = load(tmp_path / "run")
    assert again.head.weight is again.input.tokens.weight


def test_a_finished_run_can_be_asked_again_and_extended(text, build, config, tmp_path):
    first = train(build(), text.task(config()), config(steps=3), tmp_path / "run", quiet=True)
    again = resume(tmp_path / "run", text.task(config()), quiet=True)
    assert (again.evaluation, again.samples, again.tokens_per_second) == (first.evaluation, first.samples, 0)
    assert resume(tmp_path / "run", text.task(config()), changes={"steps": 5}, quiet=True).steps == 5


def test_another_text_is_refused(text, build, config, tmp_path):
    train(build(), text.task(config()), config(steps=1), tmp_path / "run", quiet=True)
    with pytest.raises(BadInput, match="not the training data"):
        resume(tmp_path / "run", text.task(config(), text.valid), changes={"steps": 2}, quiet=True)
    assert read_state(tmp_path / "run").step == 1


def test_a_change_that_makes_it_another_run_is_refused(text, build, config, tmp_path):
    train(build(), text.task(config()), config(steps=1), tmp_path / "run", quiet=True)
    with pytest.raises(BadValue, match="this run has lr=0.01; with lr=1.0"):
        resume(tmp_path / "run", text.task(config()), changes={"lr": 1.0}, quiet=True)


def test_a_model_that_was_never_in_training_cannot_be_resumed(text, build, config, tmp_path):
    save_model(build(), tmp_path / "model")
    with pytest.raises(BadInput, match="no state of its training"):
        resume(tmp_path / "model", text.task(config()), quiet=True)


# ------------------------------------------------------------------ killed while saving


def in_a_killed_process(work, function: str, after: int) -> bool:
    """Whether `work` was killed (as by kill -9) when it called os.<function> once more than `after` times."""
    child = os.fork()
    if child == 0:
        torch.set_num_threads(1)  # the parent's other threads have not come along
        calls, original = [], getattr(os, function)

        def deadly(*args):
            calls.append(args)
            if len(calls) > after:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*args)

        setattr(os, function, deadly)
        work()
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.slow
@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_kill_at_any_moment_of_a_save_leaves_a_whole_state(text, build, config, tmp_path, function):
    model = build(dropout=0.1)
    train(model, text.task(config()), config(steps=2), tmp_path / "old", quiet=True)
    run = Run(model, text.task(config()), config(steps=2), tmp_path / "old", {})
    restore(tmp_path / "old", model, run.optimizer)
    at = {2: weights(model)}
    run.step(2)
    at[3] = weights(model)
    seen = []
    for after in range(20):
        folder = shutil.copytree(tmp_path / "old", tmp_path / f"{after}")
        killed = in_a_killed_process(
            lambda folder=folder: save_run(folder, model, run.optimizer, replace(run.state, step=3)), function, after
        )
        state, again = read_state(folder), build()
        optimizer = adamw(again, 1e-2)
        restore(folder, again, optimizer)
        assert weights(again).equal(at[state.step])
        assert {float(values["step"]) for values in optimizer.state.values()} == {float(state.step)}
        seen.append(state.step)
        if not killed:
            break
    assert len(seen) > 6
    assert seen == sorted(seen)
    assert set(seen) == {2, 3}


@pytest.mark.slow
@pytest.mark.parametrize("function", ["mkdir", "fsync", "replace"])
def test_a_run_killed_at_any_moment_of_its_first_save_begins_anew_or_goes_on(text, build, config, tmp_path, function):
    ran, begun_anew = config(steps=1, eval_windows=1), []
    for after in range(0, 40, 2 if function == "replace" else 3):
        folder = tmp_path / f"{after}"
        killed = in_a_killed_process(
            lambda folder=folder: train(build(), text.task(ran), ran, folder, quiet=True), function, after
        )
        try:
            begun_anew.append(True)
            train(build(), text.task(ran), ran, folder, quiet=True)
        except BadValue:  # a whole state is there
            begun_anew[-1] = False
            resume(folder, text.task(ran), quiet=True)
        assert read_state(folder).step == 1
        assert sorted(path.name for path in folder.iterdir()) == WHOLE
        if not killed:
            break
    assert begun_anew[-1] is False
    assert begun_anew == sorted(begun_anew, reverse=True)
    assert begun_anew[0]


WHOLE = ["config.json", "metrics.jsonl", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "training"]


def test_a_first_save_that_was_cut_short_is_no_model_and_says_so(text, build, config, tmp_path):
    ran = config(steps=1)
    assert in_a_killed_process(lambda: train(build(), text.task(ran), ran, tmp_path / "run", quiet=True), "replace", 5)
    assert (tmp_path / "run" / "config.json").exists()
    for ask in (load, read_state):
        with pytest.raises(BadInput, match="holds no model yet: its first save is not done, or was cut short"):
            ask(tmp_path / "run")


def test_what_killed_processes_left_is_swept_when_resuming(text, build, config, tmp_path):
    train(build(), text.task(config()), config(steps=1), tmp_path / "run", quiet=True)
    left = [tmp_path / "run" / name for name in (".draft-1-abcd", ".loss.png.1.ab.tmp", ".metrics.jsonl.1.ab.tmp")]
    left[0].mkdir()
    (left[0] / "model.safetensors").write_bytes(b"half")
    for file in left[1:]:
        file.touch()
        os.utime(file, (1, 1))
    resume(tmp_path / "run", text.task(config()), changes={"steps": 2}, quiet=True)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == WHOLE


# ------------------------------------------------------------------ two at once


def test_a_second_writer_is_refused_and_the_first_goes_on(text, build, config, tmp_path, monkeypatch):
    """New beside new, new beside resumed, resumed beside resumed, and a model saved over either."""
    refused, original = [], Run.step
    first, short = build(**DROPOUT), config(steps=3)

    def others(self, number, *stop):
        for intrude in (
            lambda: train(build(), text.task(short), short, tmp_path / "run", quiet=True),
            lambda: resume(tmp_path / "run", text.task(short), quiet=True),
            lambda: save_model(build(), tmp_path / "run"),
        ):
            thread = threading.Thread(target=lambda intrude=intrude: refused.append(refusal(intrude)))
            thread.start()
            thread.join()
        return original(self, number, *stop)

    train(build(**DROPOUT), text.task(config()), config(steps=6), tmp_path / "alone", quiet=True)
    monkeypatch.setattr(Run, "step", others)
    train(first, text.task(short), config(steps=3), tmp_path / "run", quiet=True)
    resume(tmp_path / "run", text.task(config()), changes={"steps": 6}, quiet=True)
    assert len(refused) == 3 * 6
    assert all("has been writing" in str(error) for error in refused)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == WHOLE
    assert read_state(tmp_path / "run").step == 6


def refusal(work) -> BadInput | None:
    """The BadInput that `work` raises."""
    try:
        work()
    except BadInput as error:
        return error
    return None


def test_a_run_whose_process_was_killed_is_resumed_at_once(text, build, config, tmp_path):
    ran, folder = config(steps=9, save_every=1), tmp_path / "run"
    assert in_a_killed_process(lambda: train(build(), text.task(ran), ran, folder, quiet=True), "replace", 20)
    assert (folder / ".lock").exists()
    assert resume(folder, text.task(ran), quiet=True).steps == 9


def test_a_sigterm_saves_and_the_run_goes_on_from_there(text, build, config, tmp_path, monkeypatch):
    original = Run.step

    def step(self, number, *stop):
        if number == 3:
            signal.raise_signal(signal.SIGTERM)
        return original(self, number, *stop)

    monkeypatch.setattr(Run, "step", step)
    with pytest.raises(Terminated):
        train(build(), text.task(config()), config(), tmp_path / "run", quiet=True)
    assert read_state(tmp_path / "run").step == 4


def test_a_run_goes_on_when_nobody_can_read_what_it_says(text, build, config, tmp_path, monkeypatch):
    """Its terminal was closed, or the pipe that it writes into."""

    class Gone(io.StringIO):
        def write(self, text):
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(sys, "stderr", Gone())
    assert train(build(), text.task(config()), config(steps=2), tmp_path / "run").steps == 2


def test_a_save_that_fails_leaves_the_old_state_and_nothing_else(text, build, config, tmp_path, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    train(build(), text.task(config()), config(steps=2), tmp_path / "run", quiet=True)
    files = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    run = Run(build(), text.task(config()), config(steps=2), tmp_path / "run", {})
    run.step(0)
    monkeypatch.setattr("gnomon.train.optimizer_state.write_tensors", full)
    with pytest.raises(BadInput, match="No space left on device; what it held is as it was"):
        run.save(3)
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == files
    assert run.state.step == 0
