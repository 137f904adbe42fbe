"""Stopping and going on is not stopping: the same weights, losses and rates, bit for bit, from wherever it stopped."""

import errno
import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gnomon.checkpoints import load, save_model
from gnomon.checkpoints.native import read_tensors, write_tensors
from gnomon.data import TokenStore
from gnomon.errors import BadInput, BadValue
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

    def step(self, n):
        if n == number:
            signal.raise_signal(signal.SIGINT)
        return original(self, n)

    monkeypatch.setattr(Run, "step", step)


@pytest.mark.parametrize(("stop", "pieces"), [(1, 1), (3, 1), (5, 1), (7, 1), (11, 1), (3, 2)])
def test_a_run_stopped_and_resumed_is_the_uninterrupted_run(
    text, ten_windows, build, config, tmp_path, monkeypatch, stop, pieces
):
    ran = config(eval_every=5, sample_every=6, accumulate=pieces)
    whole = build(**DROPOUT)
    train(whole, text.task(ran, ten_windows), ran, tmp_path / "whole", quiet=True)
    press_ctrl_c_in_step(stop - 1, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        train(build(**DROPOUT), text.task(ran, ten_windows), ran, tmp_path / "stopped", quiet=True)
    assert read_state(tmp_path / "stopped").step == stop
    torch.manual_seed(999)  # a new process has another random state
    resume(tmp_path / "stopped", text.task(config(), ten_windows), quiet=True)
    assert weights(load(tmp_path / "stopped")).equal(weights(whole))
    assert numbers(tmp_path / "stopped") == numbers(tmp_path / "whole")
    assert read_state(tmp_path / "stopped") == read_state(tmp_path / "whole")


def test_what_was_logged_after_the_last_save_is_not_logged_twice(text, build, config, tmp_path):
    train(build(), text.task(config()), config(steps=3), tmp_path / "run", quiet=True)
    with open(tmp_path / "run" / "metrics.jsonl", "a") as file:
        file.write('{"step": 4, "loss": 9.0}\n{"step": 5, "lo')  # then came the kill
    resume(tmp_path / "run", text.task(config()), changes={"steps": 5}, quiet=True)
    losses = [(line["step"], line["loss"]) for line in numbers(tmp_path / "run") if "loss" in line]
    assert [step for step, _ in losses] == [1, 2, 3, 4, 5]
    assert losses[3][1] != 9.0


def test_a_run_can_be_resumed_from_its_first_moment(text, build, config, tmp_path, monkeypatch):
    def power_cut(self, number):
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
    save_model(tmp_path / "model", build())
    with pytest.raises(BadInput, match="no state of its training"):
        resume(tmp_path / "model", text.task(config()), quiet=True)


# ------------------------------------------------------------------ killed while saving


def in_a_killed_process(work, function: str, after: int) -> bool:
    """Whether `work` was killed (as by kill -9) when it called os.<function> once more than `after` times."""
    child = os.fork()
    if child == 0:
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


def test_what_a_killed_save_left_is_swept_when_resuming(text, build, config, tmp_path):
    train(build(), text.task(config()), config(steps=1), tmp_path / "run", quiet=True)
    left = tmp_path / "run" / ".draft-1-abcd"
    left.mkdir()
    (left / "model.safetensors").write_bytes(b"half")
    resume(tmp_path / "run", text.task(config()), changes={"steps": 2}, quiet=True)
    assert not left.exists()


def test_a_save_that_fails_leaves_the_old_state_and_nothing_else(text, build, config, tmp_path, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    train(build(), text.task(config()), config(steps=2), tmp_path / "run", quiet=True)
    files = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    run = Run(build(), text.task(config()), config(steps=2), tmp_path / "run", {})
    run.step(0)
    monkeypatch.setattr("gnomon.train.state.write_tensors", full)
    with pytest.raises(BadInput, match="No space left on device; what it held is as it was"):
        run.save(3)
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == files
    assert run.state.step == 0


# ------------------------------------------------------------------ damaged


def test_every_file_of_a_run_that_is_missing_or_cut_off_is_named(text, build, config, tmp_path):
    train(build(), text.task(config()), config(steps=1), tmp_path / "whole", quiet=True)
    whole = tmp_path / "whole"
    files = ["config.json", "model.safetensors", "tokenizer.json", "training/step-1/state.json"]
    for name in [*files, "training/step-1/optimizer.safetensors"]:
        for harm in ("missing", "cut off"):
            folder = shutil.copytree(whole, tmp_path / f"{harm} {name.replace('/', ' ')}")
            data = (folder / name).read_bytes()
            (folder / name).unlink()
            if harm == "cut off":
                (folder / name).write_bytes(data[: len(data) // 2])
            with pytest.raises(BadInput, match=Path(name).name):
                resume(folder, text.task(config()), changes={"steps": 2}, quiet=True)


def test_an_optimizer_of_another_model_is_refused(text, build, config, tmp_path):
    for name, changes in (("narrow", {}), ("wide", {"d_ff": 24}), ("deep", {"n_layers": 2})):
        train(build(**changes), text.task(config()), config(steps=1), tmp_path / name, quiet=True)
    file = "training/step-1/optimizer.safetensors"
    whole, _ = read_tensors(tmp_path / "narrow" / file)
    less = {name: tensor for name, tensor in whole.items() if not name.startswith("stack.norm.weight")}
    others = [read_tensors(tmp_path / name / file)[0] for name in ("wide", "deep")]
    messages = ["has shape", "belongs to none of its weights", "lacks stack.norm.weight"]
    for tensors, message in zip([*others, less], messages, strict=True):
        write_tensors(tmp_path / "narrow" / file, tensors)
        with pytest.raises(BadInput, match=f"does not fit the model: .*{message}"):
            resume(tmp_path / "narrow", text.task(config()), changes={"steps": 2}, quiet=True)


@pytest.mark.parametrize("damage", [{"step": None}, {"config": {"stepz": 1}}, {"config": {"steps": 0}}, {"more": 1}])
def test_a_state_that_makes_no_sense_is_named(text, build, config, tmp_path, damage):
    train(build(), text.task(config()), config(steps=1), tmp_path / "run", quiet=True)
    file = tmp_path / "run" / "training" / "step-1" / "state.json"
    data = json.loads(file.read_text()) | damage
    file.write_text(json.dumps({key: value for key, value in data.items() if value is not None}))
    with pytest.raises(BadInput, match=r"state\.json is damaged"):
        resume(tmp_path / "run", text.task(config()), quiet=True)
