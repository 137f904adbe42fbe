"""Run: what a training run does at each step, and the one state that its folder holds."""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from gnomon.checkpoints.native import draft, unwrap, write_model
from gnomon.errors import BadInput
from gnomon.train.average import Average
from gnomon.train.config import TrainConfig
from gnomon.train.evaluation import Evaluation
from gnomon.train.health import MOST, Health, NotFinite, Spike
from gnomon.train.kept import BEST, keep_last, show_adapter, show_average
from gnomon.train.loader import Loader, MakerEnded
from gnomon.train.loss import Loss
from gnomon.train.memory_estimate import check_memory, is_out_of_memory
from gnomon.train.optim import optimizer_of
from gnomon.train.precision import FIRST, training_dtype
from gnomon.train.ranks import Ranks
from gnomon.train.schedule import rate
from gnomon.train.spread import at_hand, gather, prepare
from gnomon.train.state import Best, State, save_run
from gnomon.train.step import Abandoned, training_step
from gnomon.train.task import Task


class Run:
    """A model, its optimizer and its task. Step s depends on the config, the task and s alone."""

    def __init__(
        self, model: nn.Module, task: Task, config: TrainConfig, folder: Path, origin: Mapping[str, Any]
    ) -> None:
        """Raises BadValue where the model cannot be trained like this, before anything is written."""
        self.inner, self.task, self.folder, self.ranks = unwrap(model), task, folder, Ranks.here()
        self.device = next(model.parameters()).device
        check_memory(self.inner.config, config, self.device)
        task.check(self.inner, config)
        self.dtype = training_dtype(config.dtype, self.device)
        decided: Any = str(self.dtype).removeprefix("torch.")  # "auto" is decided once a run
        self.config = replace(config, dtype=decided)
        if self.dtype == torch.float64:
            model.to(self.dtype)
        self.model = prepare(model, self.inner, config, self.ranks)
        self.optimizer = optimizer_of(self.model, config, config.lr)
        self.average = None if config.ema is None else Average(self.model, config.ema)
        self.batches = Loader(task, config.steps, config.workers)
        if self.ranks.from_first(task.fingerprint) != task.fingerprint:
            raise BadInput(f"process {self.ranks.rank} reads other training data than process 0: give all the same")
        health = Health(scale=FIRST if self.dtype == torch.float16 else 1.0)
        self.state = State(0, self.config, task.fingerprint, origin, health)
        self.saved: int | None = None  # the step of the state in the folder
        self.saved_at = time.monotonic()
        self.targets, self.seconds = 0, 0.0  # learned from here, and the time it took

    def go_on_from(self, state: State) -> None:
        """Continue where the state of a folder ends, which weights and optimizer have been restored from."""
        same = state.config.dtype == self.config.dtype  # else the scale of a loss begins anew
        health = state.health if same else replace(state.health, scale=self.state.health.scale)
        self.state = replace(self.state, step=state.step, health=health, best=state.best)
        self.saved = state.step if state.config == self.config else None

    def step(self, number: int, stop: Callable[[], object] = lambda: None) -> Loss | None:
        """Take step `number`, 0-based; None where it was skipped.

        Raises NotFinite or Spike, with the way out, where the numbers overflow or jump, and Abandoned where `stop`
        returned something between two pieces of the batch: the state is then what it was before the step.
        """
        before, c, seen = time.perf_counter(), self.config, [0.0, 0.0]
        try:
            batch = self.batches.batch(number)
        except MakerEnded as error:
            if stop():  # by the same signal
                raise Abandoned from error
            raise
        torch.manual_seed(_mixed_seed(c.seed, number, self.ranks.rank))  # what dropout draws from

        def judge(loss: float, norm: float, lr: float) -> None:
            seen[:] = loss, norm
            self.state.health.check(loss, norm, lr, c)

        loss = None
        try:
            loss = training_step(
                self.model,
                self.optimizer,
                batch.to(self.device),
                self.rate(number),
                c.clip,
                c.accumulate,
                self.dtype,
                scale=self.state.health.scale,
                judge=judge,
                stop=stop if self.ranks.size == 1 else lambda: None,
                ranks=self.ranks,
            )
            health = self.state.health.after(seen[0], seen[1], c, scaled=self.dtype == torch.float16)
        except (NotFinite, Spike) as error:
            health = self._skip(number, error, seen[0], seen[1])
        except (RuntimeError, MemoryError) as error:
            if is_out_of_memory(error):
                raise self._out_of_memory(number, error) from error
            raise
        if loss is not None and self.average is not None:
            self.average.update(number)
        self.state = replace(self.state, health=health)
        self.targets, self.seconds = self.targets + batch.targets, self.seconds + time.perf_counter() - before
        return loss

    def _skip(self, number: int, error: NotFinite | Spike, loss: float, norm: float) -> Health:
        """The health of a run that leaves a step out; raises where the policy is to stop."""
        overflowed = self.state.health.scale > 1 and np.isfinite(loss) and not np.isfinite(norm)
        health = self.state.health.after_skipping(overflowed)
        if overflowed or (self.config.on_bad_step == "skip" and health.in_a_row < MOST):
            return health
        again = f" for the {MOST}th time in a row" if self.config.on_bad_step == "skip" else ""
        raise type(error)(
            f"training stopped at step {number}{again}: {error}. Take a lower lr or a longer warmup. {self.whereabouts}"
        ) from error

    def _out_of_memory(self, number: int, error: BaseException) -> BadInput:
        c = self.config
        advice = [f"a batch_size below {c.batch_size} or a length below {c.length}", f"accumulate above {c.accumulate}"]
        advice += [] if c.gradient_checkpointing else ["gradient_checkpointing=true"]
        advice += ["parallel=fsdp on several processes"] if self.ranks.size == 1 or c.parallel == "ddp" else []
        return BadInput(
            f"out of memory at step {number}: {str(error).splitlines()[0] if str(error) else 'no more can be had'}. "
            f"Choose {', '.join(advice)}, or a smaller model. {self.whereabouts}"
        )

    @property
    def whereabouts(self) -> str:
        """What is safe."""
        return f"{self.folder} holds the weights of step {self.state.step}"

    def rate(self, number: int) -> float:
        """The learning rate of step `number`."""
        return rate(self.config, number)

    @property
    def tokens_per_second(self) -> float:
        """Targets over the time of the steps; 0 before the first."""
        return self.targets / self.seconds if self.seconds else 0.0

    def evaluate(self, done: int) -> Evaluation:
        """Measure the model, its average where there is one, on what is held out; keep it if it is the best so far."""
        with self._averaged(), at_hand(self.model):
            evaluation = self.task.evaluate(self.model, self.dtype)
            best = self.state.best
            if self.config.keep_best and (best is None or evaluation.loss < best.loss):
                self.state = replace(self.state, best=Best(done, evaluation.loss))
                whole = gather(self.inner)
                if self.ranks.first:
                    with draft(self.folder / BEST) as new:
                        write_model(whole, new)
        return evaluation

    def samples(self) -> list[str]:
        """What the model can do, as the task shows it."""
        with self._averaged(), at_hand(self.model):
            return self.task.samples(self.inner)

    def _averaged(self) -> AbstractContextManager[None]:
        return nullcontext() if self.average is None else self.average.in_place()

    @property
    def minutes_passed(self) -> bool:
        """Whether the clock says that it is time to save."""
        minutes = self.config.save_minutes
        return minutes is not None and time.monotonic() - self.saved_at >= 60 * minutes

    def save(self, done: int) -> None:
        """Make the state after `done` steps the one that the folder holds."""
        state = replace(self.state, step=done)
        if done != self.saved:
            save_run(self.folder, self.model, self.optimizer, state, self.average, self.ranks)
        self.state, self.saved, self.saved_at = state, done, time.monotonic()
        show_adapter(self.folder, self.inner, self.state.origin.get("from"), self.ranks)
        if self.ranks.first:
            keep_last(self.folder, done, self.config.keep)
            show_average(self.folder, done)


def _mixed_seed(*numbers: int) -> int:
    """One seed from several numbers, such that neighbours have nothing in common; a last 0 is as good as none."""
    return int(np.random.SeedSequence(numbers[: 3 if numbers[-1] else 2]).generate_state(1, np.uint64)[0])


__all__ = ["Run", "training_dtype"]
