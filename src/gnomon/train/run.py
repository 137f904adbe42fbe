"""Run: what a training run does at each step, and the one state that its folder holds."""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from gnomon.checkpoints.native import unwrap
from gnomon.device import resolve_dtype
from gnomon.train.config import TrainConfig
from gnomon.train.evaluation import Evaluation
from gnomon.train.loss import Loss
from gnomon.train.memory_estimate import check_memory
from gnomon.train.optim import adamw
from gnomon.train.schedule import warmup_cosine
from gnomon.train.state import State, save_run
from gnomon.train.step import NotFinite, training_step
from gnomon.train.task import Task


class Run:
    """A model, its optimizer and its task. Step s depends on the config, the task and s alone."""

    def __init__(
        self, model: nn.Module, task: Task, config: TrainConfig, folder: Path, origin: Mapping[str, Any]
    ) -> None:
        """Raises BadValue where the model cannot be trained like this, before anything is written."""
        self.model, self.inner, self.task, self.folder = model, unwrap(model), task, folder
        self.device = next(model.parameters()).device
        check_memory(self.inner.config, config, self.device)
        task.check(self.inner, config)
        self.dtype = training_dtype(config.dtype, self.device)
        self.config = replace(config, dtype=str(self.dtype).removeprefix("torch."))  # "auto" is decided once a run
        if self.dtype == torch.float64:
            model.to(self.dtype)
        self.optimizer = adamw(model, config.lr, config.weight_decay)
        self.state = State(0, self.config, task.fingerprint, origin)
        self.targets, self.seconds = 0, 0.0  # learned from here, and the time it took

    def step(self, number: int) -> Loss:
        """Take step `number`, 0-based; raises NotFinite, with the way out, where the numbers overflow."""
        before = time.perf_counter()
        torch.manual_seed(_mixed_seed(self.config.seed, number))  # what dropout draws from
        batch, c = self.task.batch(number), self.config
        try:
            loss = training_step(
                self.model, self.optimizer, batch.to(self.device), self.rate(number), c.clip, c.accumulate, self.dtype
            )
        except NotFinite as error:
            raise NotFinite(
                f"training stopped at step {number}: {error}. Take a lower lr or a longer warmup. "
                f"{self.folder} holds the weights of step {self.state.step}"
            ) from error
        self.targets, self.seconds = self.targets + batch.targets, self.seconds + time.perf_counter() - before
        return loss

    def rate(self, number: int) -> float:
        """The learning rate of step `number`."""
        c = self.config
        return warmup_cosine(number, c.lr, c.warmup, c.steps, c.floor * c.lr)

    @property
    def tokens_per_second(self) -> float:
        """Targets over the time of the steps; 0 before the first."""
        return self.targets / self.seconds if self.seconds else 0.0

    def evaluate(self) -> Evaluation:
        """Measure the model on what is held out."""
        return self.task.evaluate(self.model, self.dtype)

    def samples(self) -> list[str]:
        """What the model can do, as the task shows it."""
        return self.task.samples(self.inner)

    def save(self, done: int) -> None:
        """Make the state after `done` steps the one that the folder holds."""
        state = replace(self.state, step=done)
        save_run(self.folder, self.model, self.optimizer, state)
        self.state = state


def training_dtype(name: str, device: torch.device) -> torch.dtype:
    """The dtype of a name. "auto" is float32 on a CPU: there a stopwatch says whether bfloat16 pays, and what numbers a
    seed gives must not depend on how busy the machine is."""
    return torch.float32 if name == "auto" and device.type == "cpu" else resolve_dtype(name, device)


def _mixed_seed(seed: int, number: int) -> int:
    """One seed from two numbers, such that neighbours have nothing in common."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0])


__all__ = ["Run", "training_dtype"]
