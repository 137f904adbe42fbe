"""Steps that go wrong: stopped or skipped by policy, and what was saved before them stays."""

import pytest
import torch

from gnomon.checkpoints import load
from gnomon.errors import BadInput
from gnomon.train import NotFinite, Spike, read_metrics, read_state, resume, train
from gnomon.train.health import ENOUGH, MOST, WINDOW, Health, HealthSettings
from gnomon.train.precision import LARGEST, PATIENCE, next_scale, training_dtype
from gnomon.train.run import Run

pytestmark = pytest.mark.usefixtures("no_pictures")


def break_steps(monkeypatch, *numbers: int, by: float = float("nan")) -> None:
    """Multiply the loss of these steps."""
    from gnomon.train import text

    original, at = text.Windows.loss, [0]

    def loss(self, model):
        found = original(self, model)
        return type(found)(found.total * (by if at[0] in numbers else 1), found.count)

    def step(self, number, *stop):
        at[0] = number
        return stepped(self, number, *stop)

    stepped = Run.step
    monkeypatch.setattr(text.Windows, "loss", loss)
    monkeypatch.setattr(Run, "step", step)


def test_a_loss_that_is_no_number_stops_the_run_and_names_the_last_save(text, build, config, tmp_path, monkeypatch):
    break_steps(monkeypatch, 5)
    ran = config(steps=8, save_every=2)
    with pytest.raises(NotFinite, match=r"stopped at step 5: the loss is nan .* holds the weights of step 4"):
        train(build(), text.task(ran), ran, tmp_path / "run", quiet=True)
    assert read_state(tmp_path / "run").step == 4


def test_a_step_that_is_skipped_changes_nothing_and_the_run_goes_on_bit_for_bit(
    text, build, config, tmp_path, monkeypatch
):
    break_steps(monkeypatch, 2, 3)
    ran = config(steps=6, on_bad_step="skip", save_every=1, keep=9)
    train(build(dropout=0.1), text.task(ran), ran, tmp_path / "run", quiet=True)
    state = read_state(tmp_path / "run")
    assert (state.step, state.health.skipped, state.health.in_a_row) == (6, 2, 0)
    before, after = (load(tmp_path / "run" / "checkpoints" / f"step-{n}") for n in (2, 4))
    assert all(p.equal(q) for p, q in zip(before.parameters(), after.parameters(), strict=True))
    skipped = [line["step"] for line in read_metrics(tmp_path / "run" / "metrics.jsonl") if "skipped" in line]
    assert skipped == [3, 4]
    resume(tmp_path / "run" / "checkpoints" / "step-4", text.task(ran), quiet=True)
    again, whole = (load(folder) for folder in (tmp_path / "run" / "checkpoints" / "step-4", tmp_path / "run"))
    assert all(p.equal(q) for p, q in zip(again.parameters(), whole.parameters(), strict=True))


def test_too_many_skipped_steps_in_a_row_stop_the_run(text, build, config, tmp_path, monkeypatch):
    break_steps(monkeypatch, *range(1, 40))
    ran = config(steps=40, on_bad_step="skip")
    with pytest.raises(NotFinite, match=f"stopped at step {MOST} for the {MOST}th time in a row"):
        train(build(), text.task(ran), ran, tmp_path / "run", quiet=True)


def test_a_spike_is_judged_by_the_steps_before_also_after_resuming(text, build, config, tmp_path, monkeypatch):
    ran = config(steps=ENOUGH + 6, spike=6.0, save_every=10, lr=1e-3)
    break_steps(monkeypatch, ENOUGH + 3, by=50.0)
    for go in (
        lambda: train(build(), text.task(ran), ran, tmp_path / "run", quiet=True),
        lambda: resume(tmp_path / "run", text.task(ran), quiet=True),
    ):
        with pytest.raises(Spike, match=rf"step {ENOUGH + 3}: the (loss|norm .*) is .* in the steps before"):
            go()
    assert read_state(tmp_path / "run").step == 30


def test_only_what_is_far_above_is_a_spike_and_the_window_moves():
    settings, health = HealthSettings(spike=6.0), Health()
    for n in range(300):
        value = 10 - n / 50 + n % 2
        health.check(value, 1.0 + n % 2, 1e-3, settings)
        health = health.after(value, 1.0 + n % 2, settings, scaled=False)
    assert len(health.losses) == len(health.norms) == WINDOW
    with pytest.raises(Spike, match="loss"):
        health.check(12.0, 1.0, 1e-3, settings)
    health.check(12.0, 1.0, 1e-3, HealthSettings())


# ------------------------------------------------------------------ float16


def test_the_scale_halves_with_an_overflow_and_doubles_after_many_good_steps():
    assert next_scale(8.0, 5, overflowed=True) == (4.0, 0)
    assert next_scale(1.0, 5, overflowed=True) == (1.0, 0)
    assert next_scale(8.0, PATIENCE - 1, overflowed=False) == (16.0, 0)
    assert next_scale(LARGEST, PATIENCE - 1, overflowed=False) == (LARGEST, 0)
    assert next_scale(8.0, 5, overflowed=False) == (8.0, 6)


def test_float16_learns_like_float32_and_its_scale_goes_on(text, build, config, tmp_path, monkeypatch):
    monkeypatch.setattr("gnomon.train.run.FIRST", 256.0)
    losses = {}
    for dtype in ("float32", "float16"):
        ran = config(steps=6, dtype=dtype, save_every=3)
        train(build(), text.task(ran), ran, tmp_path / dtype, quiet=True)
        losses[dtype] = [line["loss"] for line in read_metrics(tmp_path / dtype / "metrics.jsonl") if "loss" in line]
    assert losses["float16"] == pytest.approx(losses["float32"], rel=2e-2)
    assert losses["float16"] != losses["float32"]
    health = read_state(tmp_path / "float16").health
    assert (health.scale, health.good_steps, health.skipped) == (256.0, 6, 0)
    assert {p.dtype for p in load(tmp_path / "float16").parameters()} == {torch.float32}


def test_an_overflow_of_the_scaled_gradient_is_skipped_whatever_the_policy(text, build, config, tmp_path, monkeypatch):
    monkeypatch.setattr("gnomon.train.run.FIRST", 2.0**24)
    ran = config(steps=30, dtype="float16", lr=1e-3)
    train(build(), text.task(ran), ran, tmp_path / "run", quiet=True)
    health = read_state(tmp_path / "run").health
    assert health.skipped > 0
    assert health.scale == 2.0 ** (24 - health.skipped)


def test_auto_takes_what_the_device_is_fast_at(monkeypatch):
    assert training_dtype("auto", torch.device("cpu")) == torch.float32
    for fast, want in ((True, torch.bfloat16), (False, torch.float16)):
        monkeypatch.setattr("torch.cuda.is_bf16_supported", lambda including_emulation=True, fast=fast: fast)
        assert training_dtype("auto", torch.device("cuda")) == want


# ------------------------------------------------------------------ memory


@pytest.mark.parametrize("error", [MemoryError(), torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("x")])
def test_out_of_memory_says_what_to_lower_and_what_is_saved(text, build, config, tmp_path, monkeypatch, error):
    def step(*args, **settings):
        raise error

    monkeypatch.setattr("gnomon.train.run.training_step", step)
    ran = config(accumulate=2)
    kind = BadInput if not isinstance(error, RuntimeError) or "CUDA" in str(error) else RuntimeError
    with pytest.raises(kind) as told:
        train(build(), text.task(ran), ran, tmp_path / "run", quiet=True)
    if kind is BadInput:
        assert "out of memory at step 0" in str(told.value)
        assert "a batch_size below 2 or a length below 8, accumulate above 2, gradient_checkpointing=true" in str(
            told.value
        )
        assert "holds the weights of step 0" in str(told.value)
