"""metrics.jsonl, one JSON object a line, and the picture of it.

A line has the number of steps taken and some of these, losses in nats per token:

    {"step": 10, "loss": 5.81, "lr": 0.0001, "tokens_per_second": 15000}            while training, nats per token
    {"step": 500, "valid_loss": 2.9, "valid_perplexity": 18.2, "valid_bits_per_byte": 2.01}
    {"step": 500, "samples": ["def ..."]}
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from gnomon.data import atomic

Metrics = list[dict[str, Any]]


class MetricsLog:
    """The file, open at its end: a line is on its way to the disk as soon as it is written."""

    def __init__(self, path: Path, until: int) -> None:
        """Keep what was written up to step `until`, which is where training goes on from, and drop the rest."""
        self.lines = [line for line in read_metrics(path) if line["step"] <= until]
        with atomic(path) as file:
            file.writelines(f"{json.dumps(line)}\n".encode() for line in self.lines)
        self._file = open(path, "a", encoding="utf-8", buffering=1)  # noqa: SIM115  closed by close()

    def write(self, step: int, **values: float | list[str]) -> None:
        """Add one line."""
        self.lines.append({"step": step, **values})
        self._file.write(f"{json.dumps(self.lines[-1])}\n")

    def close(self) -> None:
        """Write no more."""
        self._file.close()


def read_metrics(path: Path) -> Metrics:
    """The lines of a metrics.jsonl, none if there is no such file; a last line that was cut off is left out."""
    return list(_whole_lines(path)) if path.is_file() else []


def _whole_lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            return


def plot_loss(metrics: Metrics, path: Path) -> None:
    """Draw training and held-out loss over the steps into a PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    trained = [(line["step"], line["loss"]) for line in metrics if "loss" in line]
    held_out = [(line["step"], line["valid_loss"]) for line in metrics if "valid_loss" in line]
    figure = Figure(figsize=(7, 4))
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    if trained:
        steps, losses = zip(*trained, strict=True)
        axes.plot(steps, losses, color="tab:blue", alpha=0.3, linewidth=1)
        axes.plot(steps, smooth(losses), color="tab:blue", label="training")
    if held_out:
        axes.plot(*zip(*held_out, strict=True), "o-", color="tab:red", label="held out")
    axes.set(xlabel="step", ylabel="loss (nats per token)")
    if trained or held_out:
        axes.legend()
    axes.grid(alpha=0.3)
    with atomic(path) as file:
        figure.savefig(file, format="png", dpi=120)


def smooth(values: Sequence[float], reach: int = 10) -> list[float]:
    """The mean of each value and as many on either side, up to `reach`: it lags behind nothing, even at the ends."""
    last = len(values) - 1
    spans = [min(i, last - i, reach) for i in range(len(values))]
    return [fmean(values[i - span : i + span + 1]) for i, span in enumerate(spans)]


__all__ = ["Metrics", "MetricsLog", "plot_loss", "read_metrics", "smooth"]
