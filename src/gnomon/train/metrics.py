"""metrics.jsonl, one JSON object a line, and the picture of it.

A line has the number of steps taken and some of these, losses in nats per token:

    {"step": 10, "loss": 5.81, "lr": 0.0001, "tokens_per_second": 15000}            while training, nats per token
    {"step": 500, "valid_loss": 2.9, "valid_perplexity": 18.2, "valid_bits_per_byte": 2.01}
    {"step": 500, "samples": ["def ..."]}
    {"step": 700, "skipped": 1}                    steps left out so far, the last of them just now
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Any

from gnomon.data import atomic
from gnomon.errors import BadInput

MOST = 1e30  # a number in a log, and a point on an axis, is smaller
Metrics = list[dict[str, Any]]


class MetricsLog:
    """The file, open at its end: a line is on its way to the disk as soon as it is written."""

    def __init__(self, path: Path, until: int) -> None:
        """Keep what was written up to step `until`, which is where training goes on from, and drop the rest.

        Lines that cannot be read are dropped too, for a log must never keep a good run from going on; `damaged` counts
        them. BadInput where the file cannot be read or written at all.
        """
        lines, self.damaged = _read(path)
        self.lines = [line for line in lines if line["step"] <= until]
        with atomic(path) as file:
            file.writelines(f"{json.dumps(line)}\n".encode() for line in self.lines)
        self._path = path
        self._file = open(path, "a", encoding="utf-8", buffering=1)  # noqa: SIM115  closed by close()

    def write(self, step: int, **values: float | list[str]) -> None:
        """Add one line."""
        self.lines.append({"step": step, **values})
        try:
            self._file.write(f"{json.dumps(self.lines[-1])}\n")
            self._file.flush()
        except OSError as error:
            raise BadInput(f"cannot write {self._path}: {error.strerror}; what was saved is as it was") from error

    def close(self) -> None:
        """Write no more."""
        with suppress(OSError):  # what a full disk refused was told when it was written
            self._file.close()


class SilentLog(MetricsLog):
    """The log of a process that is not the first of its run: it writes nothing."""

    def __init__(self) -> None:
        self.lines, self.damaged = [], 0

    def write(self, step: int, **values: float | list[str]) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


def read_metrics(path: Path) -> Metrics:
    """The lines of a metrics.jsonl, none if there is no such file; damaged ones, such as a cut-off last one, are left
    out. BadInput where the file cannot be read."""
    return _read(path)[0]


def _read(path: Path) -> tuple[Metrics, int]:
    """The lines that make sense, and how many do not; a last one that was cut off by a kill is not counted."""
    if not path.is_file():
        return [], 0
    try:
        *whole, last = path.read_bytes().split(b"\n")
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    read = [_line(line) for line in whole if line.strip()]
    good = [line for line in (*read, _line(last)) if line is not None]
    return good, read.count(None)


def _line(text: bytes) -> dict[str, Any] | None:
    """One line, or None where it is not what the module's docstring shows; keys that it does not show are kept."""
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        return None
    fits = isinstance(line, dict) and type(line.get("step")) is int and line["step"] >= 0
    return line if fits and all(_makes_sense(key, value) for key, value in line.items()) else None


def _makes_sense(key: str, value: object) -> bool:
    if key == "samples":
        return isinstance(value, list) and all(isinstance(text, str) for text in value)
    if key in ("step", "loss", "lr", "tokens_per_second", "skipped") or key.startswith("valid_"):
        return isinstance(value, float) or (type(value) is int and abs(value) < MOST)
    return True


def plot_loss(metrics: Metrics, path: Path) -> None:
    """Draw training and held-out loss over the steps into a PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    trained, held_out = _points(metrics, "loss"), _points(metrics, "valid_loss")
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


def _points(metrics: Metrics, name: str) -> list[tuple[int, float]]:
    """(step, value) of each line that has a value; one that no axis reaches is none."""
    return [(line["step"], line[name]) for line in metrics if abs(line.get(name, inf)) < MOST]


def smooth(values: Sequence[float], reach: int = 10) -> list[float]:
    """The mean of each value and as many on either side, up to `reach`: it lags behind nothing, even at the ends."""
    last = len(values) - 1
    spans = [min(i, last - i, reach) for i in range(len(values))]
    return [fmean(values[i - span : i + span + 1]) for i, span in enumerate(spans)]


__all__ = ["Metrics", "MetricsLog", "plot_loss", "read_metrics", "smooth"]
