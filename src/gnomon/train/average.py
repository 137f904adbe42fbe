"""An exponential moving average of the weights: a' = beta a + (1 - beta) w after each step, with a = w at the start.

The average of the last 1 / (1 - beta) steps or so is usually the better model (Polyak and Juditsky 1992; Izmailov et
al. 2018, arXiv:1803.05407). Early on beta is smaller, (1 + n) / (10 + n) after n steps, so that first weights fade.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from gnomon.checkpoints.native import plain_name, read_tensors
from gnomon.errors import BadInput
from gnomon.train.optimizer_state import place
from gnomon.train.whole import whole_tensor


class Average:
    """The average of the weights that are trained, each once; it takes as much memory as they do."""

    def __init__(self, model: nn.Module, beta: float) -> None:
        """Begin with the weights as they are."""
        self.beta = beta
        self.weights = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.values: dict[str, Tensor] = {name: p.detach().clone() for name, p in self.weights.items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after step number `step`, 0-based."""
        beta = min(self.beta, (1 + step) / (10 + step))
        for name, value in self.values.items():
            value.lerp_(self.weights[name].detach(), 1 - beta)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Within the block the model has the average for its weights."""
        kept = {name: p.detach().clone() for name, p in self.weights.items()}
        self._put(self.values)
        try:
            yield
        finally:
            self._put(kept)

    def whole(self) -> dict[str, Tensor]:
        """The values by the plain names of the weights; all processes have to ask at once."""
        return {plain_name(name): whole_tensor(value) for name, value in self.values.items()}

    def read(self, file: Path) -> None:
        """Take the average that a file holds; BadInput where it does not fit the model."""
        found = read_tensors(file)[0]
        for name, value in self.values.items():
            tensor = found.get(plain_name(name))
            if tensor is None or tensor.shape != value.shape or tensor.dtype != value.dtype:
                raise BadInput(f"{file} does not fit the model: {plain_name(name)} is missing or has another shape")
            self.values[name] = place(tensor, value)

    @torch.no_grad()
    def _put(self, values: dict[str, Tensor]) -> None:
        for name, p in self.weights.items():
            p.copy_(values[name])


__all__ = ["Average"]
