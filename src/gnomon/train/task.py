"""Task: what a model is trained on and measured by. Training knows these two protocols and nothing else of it.

A Batch knows how many labels it holds and what a model pays for them; a Task makes the batch of each step, measures a
model on what is held out, and shows what it can do. `gnomon.train.text` is the first of them; `gnomon.tasks` has more.
"""

from collections.abc import Iterator
from typing import Protocol, Self

import torch
from torch import nn

from gnomon.errors import BadValue
from gnomon.models import Model
from gnomon.train.config import TrainConfig
from gnomon.train.evaluation import Evaluation
from gnomon.train.loss import Loss

# The settings from which a task makes its batches and its held-out part; the others are the loop's own.
OF_BATCHES = ("batch_size", "length", "seed", "eval_windows", "label_smoothing")


class Batch(Protocol):
    """Rows to learn from in one step."""

    @property
    def targets(self) -> int:
        """How many labels the rows hold."""

    def pieces(self, n: int) -> Iterator[Self]:
        """The rows in `n` runs, or in as many as there are rows."""

    def loss(self, model: nn.Module) -> Loss:
        """What the model pays for the labels: a sum over them, and their number, which is `targets`."""

    def to(self, device: torch.device) -> Self:
        """The same batch on another device."""


class Task(Protocol):
    """Data, and a measure of how well it was learned."""

    name: str

    @property
    def fingerprint(self) -> str:
        """Of the training data: a run is resumed only with the data it began with."""

    def check(self, model: Model, config: TrainConfig) -> None:
        """Raise BadValue or BadInput where this model cannot be trained like this; nothing is written before."""

    def batch(self, number: int) -> Batch:
        """The batch of step `number` (0-based): a function of the seed and this number alone, on the CPU."""

    def evaluate(self, model: nn.Module, dtype: torch.dtype = torch.float32) -> Evaluation:
        """Measure a model on what is held out, without dropout; it comes back in the mode it was in."""

    def samples(self, model: Model) -> list[str]:
        """A few lines that show what the model can do."""


def check_made_for(made: TrainConfig, config: TrainConfig) -> None:
    """Raise BadValue where a task was made for other batches than a run's settings say."""
    for name in OF_BATCHES:
        if getattr(made, name) != getattr(config, name):
            raise BadValue(
                f"the task was made for {name}={getattr(made, name)}, the run has {getattr(config, name)}: "
                "make the task with the settings of the run"
            )


__all__ = ["Batch", "Task", "check_made_for"]
