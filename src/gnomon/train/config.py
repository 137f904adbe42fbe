"""TrainConfig: everything that decides how a run goes, besides the model and the task."""

from dataclasses import dataclass, fields, replace
from math import isfinite
from typing import Any

from gnomon.device import DTYPES
from gnomon.errors import BadValue, unknown
from gnomon.settings import check_fields

MOST = 2**40  # of anything that is counted

# What may change when a run is resumed. Anything else would make it another run.
CHANGEABLE = ("steps", "log_every", "eval_every", "eval_windows", "save_every", "sample_every", "dtype")


@dataclass(frozen=True)
class TrainConfig:
    """How to train. Counts are of optimizer steps; None in `..._every` means only at the end."""

    steps: int = 2500
    batch_size: int = 16  # rows a step: windows of text, sentences
    length: int = 64  # tokens a row has at most; all windows of text have as many
    lr: float = 3e-3  # the highest rate
    warmup: int = 100  # steps up to it
    floor: float = 0.1  # the share of it left at the last step
    weight_decay: float = 0.1
    clip: float | None = 1.0  # longest gradient
    label_smoothing: float = 0.0  # the share of each target's probability spread over the other classes
    accumulate: int = 1  # pieces a batch is computed in, to save memory; the result is the same
    log_every: int = 10
    eval_every: int | None = 500
    eval_windows: int = 1024  # held-out rows measured each time, spread evenly
    save_every: int | None = 500
    sample_every: int | None = 500
    seed: int = 0  # of the order of the data and of dropout
    dtype: str = "auto"  # of the products, see training_dtype

    def __post_init__(self) -> None:
        check_fields(TrainConfig, vars(self))
        for name in ("steps", "batch_size", "length", "accumulate", "log_every", "eval_windows"):
            _at_least(1, name, getattr(self, name))
        for name in ("eval_every", "save_every", "sample_every"):
            if getattr(self, name) is not None:
                _at_least(1, name, getattr(self, name))
        for name in ("warmup", "seed", "weight_decay"):
            _at_least(0, name, getattr(self, name))
        if self.seed >= 2**63:
            raise BadValue(f"seed must be below 2**63, got {self.seed}")
        if not (isfinite(self.lr) and self.lr > 0):
            raise BadValue(f"lr must be a number above 0, got {self.lr}")
        if not 0 <= self.floor <= 1:
            raise BadValue(f"floor is the share of lr that is left at the end, between 0 and 1; got {self.floor}")
        if not 0 <= self.label_smoothing < 1:
            raise BadValue(f"label_smoothing must be at least 0 and below 1, got {self.label_smoothing}")
        if self.clip is not None and not self.clip > 0:
            raise BadValue(f"clip must be above 0, or none for no limit; got {self.clip}")
        if self.accumulate > self.batch_size:
            raise BadValue(f"a batch of {self.batch_size} rows cannot be cut into {self.accumulate} pieces")
        if self.dtype not in ("auto", *DTYPES):
            raise unknown("dtype", self.dtype, ("auto", *DTYPES))
        if self.dtype == "float16":
            raise BadValue("float16 gradients underflow: train in bfloat16, which has the range of float32, or float32")

    def with_changes(self, **changes: Any) -> "TrainConfig":
        """This config for going on with a run; BadValue for a change that would make it another run."""
        for name, value in changes.items():
            if name not in {field.name for field in fields(self)}:
                raise unknown("training setting", name, [field.name for field in fields(self)])
            if name not in CHANGEABLE and value != getattr(self, name):
                raise BadValue(
                    f"this run has {name}={getattr(self, name)}; with {name}={value} it would be another one. "
                    f"When resuming you may change {', '.join(CHANGEABLE)}"
                )
        return replace(self, **changes)


def _at_least(least: int, name: str, value: float) -> None:
    if not value >= least:
        raise BadValue(f"{name} must be at least {least}, got {value}")
    if name != "seed" and value > MOST:
        raise BadValue(f"{name} must be at most 2**40, got {value}")


__all__ = ["CHANGEABLE", "TrainConfig"]
