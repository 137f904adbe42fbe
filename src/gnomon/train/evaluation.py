"""Evaluation: what was measured of a model on held-out data, by name."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from gnomon.glossary import numeral, translate
from gnomon.train.measure import Floats, Measure, ratio

# How a measure is written where four digits after the point are not the right way; by the first word of its name.
WRITTEN = {"perplexity": ".2f", "exact": ".1%", "accuracy": ".1%", "BLEU": ".1f", "chrF": ".1f"}


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
        return {f"valid_{metric_name(name)}": measure.value for name, measure in self.measures.items()}

    @property
    def notes(self) -> list[str]:
        """What has to be known about some of the values, a line each."""
        return [f"{name}: {measure.note}" for name, measure in self.measures.items() if measure.note]

    def __str__(self) -> str:
        return self.in_words()

    def in_words(self, lang: str = "en") -> str:
        """All values in one line."""
        comma = ", " if lang == "en" else "; "
        values = ((translate(name, lang), measure_text(name, m.value, lang)) for name, m in self.measures.items())
        return comma.join(f"{name} {value}" for name, value in values)


def metric_name(name: str) -> str:
    """The name of a measure for programs: "exact match log-uniform" -> "exact_match_log_uniform"."""
    return name.lower().replace(" ", "_").replace("-", "_")


def measure_text(name: str, value: float, lang: str = "en") -> str:
    """The value of a measure for a reader, in the digits of a language."""
    return numeral(value, WRITTEN.get(name.partition(" ")[0], ".4f"), lang)


def from_losses(nats: Floats, targets: Floats, more: Mapping[str, Measure] | None = None) -> Evaluation:
    """An evaluation from nats (n,) and targets (n,) of independent units: loss, perplexity, and `more` measures."""
    loss = ratio(nats, targets)
    return Evaluation({"loss": loss, "perplexity": loss.map(exp), **(more or {})}, int(targets.sum()))


def exp(nats: float) -> float:
    """Perplexity of a loss; infinite where a float cannot hold it."""
    return math.exp(nats) if nats < 700 else math.inf


__all__ = ["Evaluation", "exp", "from_losses", "measure_text", "metric_name"]
