"""Evaluation: what was measured of a model on held-out data, by name."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gnomon.train.measure import Floats, Measure, ratio

# How a measure is written where six digits are not the right way.
WRITTEN: Mapping[str, Callable[[float], str]] = {
    "loss": "{:.4f}".format,
    "perplexity": "{:.2f}".format,
    "bits per byte": "{:.4f}".format,
}


@dataclass(frozen=True)
class Evaluation:
    """Measures by name; "loss", in nats per target, is always among them."""

    measures: Mapping[str, Measure]
    targets: int  #: labels the loss is a mean over

    @property
    def loss(self) -> float:
        """Nats per target: the mean over all of them, whatever batches they came in."""
        return self.measures["loss"].value

    def as_metrics(self) -> dict[str, float]:
        """The values under the names they have in metrics.jsonl: valid_loss, valid_perplexity, valid_bits_per_byte."""
        return {f"valid_{name.replace(' ', '_')}": measure.value for name, measure in self.measures.items()}

    def __str__(self) -> str:
        return ", ".join(f"{name} {written(name, measure.value)}" for name, measure in self.measures.items())


def written(name: str, value: float) -> str:
    """The value of a measure for a reader."""
    return WRITTEN.get(name, "{:.4f}".format)(value)


def of_losses(nats: Floats, targets: Floats, more: Mapping[str, Measure] | None = None) -> Evaluation:
    """An evaluation from nats (n,) and targets (n,) of independent units: loss, perplexity, and `more` measures."""
    loss = ratio(nats, targets)
    return Evaluation({"loss": loss, "perplexity": loss.map(exp), **(more or {})}, int(targets.sum()))


def exp(nats: float) -> float:
    """Perplexity of a loss; infinite where a float cannot hold it."""
    return math.exp(nats) if nats < 700 else math.inf


__all__ = ["Evaluation", "exp", "of_losses", "written"]
