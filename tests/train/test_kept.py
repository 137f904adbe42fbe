"""Saves that are kept: the last ones, the best, those that the clock asks for, and none after another is lost."""

import os
import random
import shutil
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gnomon.checkpoints import load
from gnomon.checkpoints.native import read_tensors
from gnomon.train import read_metrics, read_state, resume, train
from gnomon.train.run import Run

pytestmark = pytest.mark.usefixtures("no_pictures")


def weights(folder: Path) -> torch.Tensor:
    return torch.cat([tensor.flatten() for _, tensor in sorted(read_tensors(folder / "model.safetensors")[0].items())])


def test_the_last_saves_are_kept_and_each_goes_on_as_the_run_did(text, build, config, tmp_path):
    ran = config(steps=8, save_every=2, keep=3)
    train(build(dropout=0.1), text.task(ran), ran, tmp_path / "run", quiet=True)
    kept = tmp_path / "run" / "checkpoints"
    assert sorted(path.name for path in kept.iterdir()) == ["step-4", "step-6", "step-8"]
    folder = shutil.copytree(kept / "step-4", tmp_path / "again")
    assert read_state(folder).step == 4
    resume(folder, text.task(ran), quiet=True)
    assert weights(folder).equal(weights(tmp_path / "run"))
    assert len(read_metrics(folder / "metrics.jsonl")) == len(read_metrics(tmp_path / "run" / "metrics.jsonl"))
    resume(tmp_path / "run", text.task(ran), changes={"keep": 1, "steps": 9}, quiet=True)
    assert not kept.exists()


def test_a_save_that_is_kept_takes_no_more_room(text, build, config, tmp_path):
    ran = config(steps=2, keep=2)
    train(build(), text.task(ran), ran, tmp_path / "run", quiet=True)
    whole = tmp_path / "run" / "model.safetensors"
    assert whole.samefile(tmp_path / "run" / "checkpoints" / "step-2" / "model.safetensors")


def test_the_best_model_is_the_one_of_the_least_loss(text, build, config, tmp_path, monkeypatch):
    losses = iter([3.0, 2.0, 2.5, 2.25])
    ran = config(steps=4, eval_every=1, save_every=1, keep_best=True, keep=9)
    task = text.task(ran)
    measured = task.evaluate(build())

    def evaluate(model, dtype):
        loss = replace(measured.measures["loss"], value=next(losses))
        return replace(measured, measures={**measured.measures, "loss": loss})

    monkeypatch.setattr(task, "evaluate", evaluate)
    train(build(), task, ran, tmp_path / "run", quiet=True)
    assert (read_state(tmp_path / "run").best.step, read_state(tmp_path / "run").best.loss) == (2, 2.0)
    assert weights(tmp_path / "run" / "best").equal(weights(tmp_path / "run" / "checkpoints" / "step-2"))
    assert load(tmp_path / "run" / "best").tokenizer is not None


def test_the_clock_asks_for_a_save(text, build, config, tmp_path, monkeypatch):
    now, saved, original = [0.0], [], Run.save
    monkeypatch.setattr("gnomon.train.run.time.monotonic", lambda: now[0])

    def step(self, number, *stop):
        now[0] += 20
        return stepped(self, number, *stop)

    def save(self, done):
        saved.append(done)
        original(self, done)

    stepped = Run.step
    monkeypatch.setattr(Run, "step", step)
    monkeypatch.setattr(Run, "save", save)
    ran = config(steps=8, save_minutes=1)
    train(build(), text.task(ran), ran, tmp_path / "run", quiet=True)
    assert saved == [0, 3, 6, 8]


def test_measuring_and_sampling_change_nothing_that_is_learned(text, build, config, tmp_path):
    often = {"eval_every": 1, "sample_every": 1, "save_every": 1, "keep_best": True}
    for name, changes in (("often", often), ("never", {})):
        ran = config(steps=5, ema=0.9, **changes)
        train(build(dropout=0.2, position="learned"), text.task(ran), ran, tmp_path / name, quiet=True)
    assert weights(tmp_path / "often").equal(weights(tmp_path / "never"))
    assert weights(tmp_path / "often" / "average").equal(weights(tmp_path / "never" / "average"))


def test_a_compiled_run_is_asked_for_once_and_saves_plain_weights(text, build, config, tmp_path, monkeypatch):
    compiled = []
    monkeypatch.setattr(torch.nn.Module, "compile", lambda self: compiled.append(type(self).__name__))
    ran = config(steps=2, compile=True, gradient_checkpointing=True)
    train(build(), text.task(ran), ran, tmp_path / "run", quiet=True)
    assert compiled == ["DecoderOnly"]
    assert load(tmp_path / "run").stack.gradient_checkpointing is False


@pytest.mark.slow
def test_batches_made_ahead_are_the_same(text, build, config, tmp_path):
    for name, workers in (("here", 0), ("ahead", 2)):
        ran = config(steps=6, workers=workers)
        train(build(dropout=0.1), text.task(ran), ran, tmp_path / name, quiet=True)
    assert weights(tmp_path / "here").equal(weights(tmp_path / "ahead"))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="forks and kills as Unix does")
def test_a_killed_run_leaves_no_lock_with_those_who_made_its_batches(text, build, config, tmp_path, monkeypatch):
    ran, original = config(steps=6, workers=2, save_every=1), Run.step

    def step(self, number, *stop):
        if number == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(self, number, *stop)

    if (child := os.fork()) == 0:
        torch.set_num_threads(1)
        monkeypatch.setattr(Run, "step", step)
        train(build(), text.task(ran), ran, tmp_path / "run", quiet=True)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert resume(tmp_path / "run", text.task(ran), changes={"workers": 0}, quiet=True).steps == 6


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="forks and kills as Unix does")
def test_a_run_stopped_at_twenty_random_moments_is_the_uninterrupted_run(text, build, config, tmp_path):
    """kill -9 and SIGTERM in turn, with and without processes that make batches, in steps, accumulation and saves."""
    often = {"eval_every": 20, "save_every": 2, "keep": 2, "keep_best": True, "ema": 0.9}

    def work(folder: Path, workers: int) -> None:
        ran = config(steps=60, batch_size=4, accumulate=2, workers=workers, **often)
        if (folder / "model.safetensors").exists():
            resume(folder, text.task(ran), quiet=True)
        else:
            train(build(dropout=0.1), text.task(ran), ran, folder, quiet=True)

    def stopped(folder: Path, workers: int, number: int | None, drawn: random.Random) -> int:
        """Let a process go on with the run until it has got somewhat further, then send it this signal; its code."""
        log = folder / "metrics.jsonl"
        saved = read_state(folder).step if (folder / "model.safetensors").exists() else 0
        if (child := os.fork()) == 0:
            try:
                torch.set_num_threads(1)  # the parent's other threads have not come along
                work(folder, workers)
                os._exit(0)
            except BaseException as error:
                os._exit(3 if isinstance(error, KeyboardInterrupt) else 1)
        if number is not None:
            goal, until = saved + drawn.randint(0, 6), time.monotonic() + 60
            while (log.read_bytes().count(b"\n") if log.exists() else 0) < goal and time.monotonic() < until:
                time.sleep(0.001)
            time.sleep(drawn.uniform(0, 0.02))
            os.kill(child, number)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    drawn, steps = random.Random(0), set()
    assert stopped(tmp_path / "whole", 0, None, drawn) == 0
    for folder, workers in ((tmp_path / "here", 0), (tmp_path / "ahead", 2)):
        for n in range(10):
            code = stopped(folder, workers, signal.SIGKILL if n % 3 else signal.SIGTERM, drawn)
            assert code in ((-signal.SIGKILL,) if n % 3 else (3, -signal.SIGTERM))  # the last: before it could be asked
            steps.add(read_state(folder).step if (folder / "model.safetensors").exists() else -1)
        assert stopped(folder, workers, None, drawn) == 0
        for part in ("", "average", "best", "checkpoints/step-58"):
            assert weights(folder / part).equal(weights(tmp_path / "whole" / part))
        assert read_state(folder).best == read_state(tmp_path / "whole").best
        ours, theirs = (read_metrics(path / "metrics.jsonl") for path in (folder, tmp_path / "whole"))
        losses = [[(line["step"], line["loss"]) for line in lines if "loss" in line] for lines in (ours, theirs)]
        assert losses[0] == losses[1]
    assert len(steps) > 5
