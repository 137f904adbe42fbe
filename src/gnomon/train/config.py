"""TrainConfig: everything that decides how a run goes, besides the model and the task."""

from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal

from gnomon.errors import BadValue, unknown
from gnomon.kinds import Setting
from gnomon.settings import check_fields
from gnomon.train.health import HealthSettings
from gnomon.train.lora import LoRASettings
from gnomon.train.optim import OptimizerSettings
from gnomon.train.schedule import MOST, ScheduleSettings

# What may change when a run is resumed. Anything else would make it another run.
CHANGEABLE = (
    "steps",
    "log_every",
    "eval_every",
    "eval_windows",
    "save_every",
    "save_minutes",
    "keep",
    "keep_best",
    "sample_every",
    "dtype",
    "workers",
    "parallel",
    "compile",
    "gradient_checkpointing",
    "on_bad_step",
)


@dataclass(frozen=True, kw_only=True)
class BatchSettings:
    """Batches"""

    batch_size: Annotated[int, Setting("rows a step: windows of text, sentences", least=1, most=MOST)] = 16
    length: Annotated[int, Setting("tokens a row has at most; windows of text have as many", least=1, most=MOST)] = 64
    clip: Annotated[float | None, Setting("longest gradient", above=0, source="arXiv:1211.5063")] = 1.0
    label_smoothing: Annotated[
        float,
        Setting(
            "share of each target's probability spread over the other classes",
            least=0,
            below=1,
            source="arXiv:1512.00567",
        ),
    ] = 0.0
    seed: Annotated[int, Setting("of the order of the data and of dropout", least=0, below=2**63)] = 0


@dataclass(frozen=True, kw_only=True)
class MachineSettings:
    """How the machine computes a step; the numbers are the same but for rounding"""

    accumulate: Annotated[int, Setting("pieces a batch is computed in, to save memory", least=1, most=MOST)] = 1
    workers: Annotated[int, Setting("processes that make batches ahead", least=0, most=1024)] = 0
    dtype: Annotated[
        Literal["auto", "float32", "bfloat16", "float16", "float64"],
        Setting("of the products; auto is float32 on a CPU, elsewhere the fastest", source="arXiv:1710.03740"),
    ] = "auto"
    gradient_checkpointing: Annotated[
        bool,
        Setting("compute activations again in the backward pass instead of keeping them", source="arXiv:1604.06174"),
    ] = False
    compile: Annotated[bool, Setting("let torch.compile make faster code of the model first")] = False
    parallel: Annotated[
        Literal["ddp", "fsdp"],
        Setting("under torchrun: a whole model on each process, or a share of it", source="arXiv:2304.11277 (fsdp)"),
    ] = "ddp"


@dataclass(frozen=True, kw_only=True)
class SavingSettings:
    """Measuring and saving; none means only at the end"""

    log_every: Annotated[int, Setting("steps between two lines of the log", least=1, most=MOST)] = 10
    eval_every: Annotated[int | None, Setting("steps between two evaluations", least=1, most=MOST)] = 500
    eval_windows: Annotated[int, Setting("held-out rows measured each time, spread evenly", least=1, most=MOST)] = 1024
    save_every: Annotated[int | None, Setting("steps between two saves", least=1, most=MOST)] = 500
    save_minutes: Annotated[float | None, Setting("minutes after which a save is due anyhow", above=0)] = None
    keep: Annotated[int, Setting("last saves that are kept, older ones in checkpoints/", least=1, most=MOST)] = 1
    keep_best: Annotated[bool, Setting("keep the model of the least held-out loss so far in best/")] = False
    sample_every: Annotated[int | None, Setting("steps between two samples", least=1, most=MOST)] = 500


@dataclass(frozen=True, kw_only=True)
class TrainConfig(
    SavingSettings, HealthSettings, MachineSettings, LoRASettings, OptimizerSettings, BatchSettings, ScheduleSettings
):
    """How to train. Counts are of optimizer steps; None in `..._every` means only at the end."""

    def __post_init__(self) -> None:
        check_fields(TrainConfig, vars(self))
        object.__setattr__(self, "lora_targets", tuple(self.lora_targets))  # JSON has lists
        if self.accumulate > self.batch_size:
            raise BadValue(f"a batch of {self.batch_size} rows cannot be cut into {self.accumulate} pieces")

    def with_changes(self, **changes: Any) -> "TrainConfig":
        """This config for going on with a run; BadValue, which lists them, for changes that would make it another."""
        known = {field.name for field in fields(self)}
        for name in changes:
            if name not in known:
                raise unknown("training setting", name, sorted(known))
        differences = [
            (name, value) for name, value in changes.items() if name not in CHANGEABLE and value != getattr(self, name)
        ]
        if differences:
            has = ", ".join(f"{name}={getattr(self, name)}" for name, _ in differences)
            given = ", ".join(f"{name}={value}" for name, value in differences)
            raise BadValue(
                f"this run has {has}; with {given} it would be another one. "
                f"When resuming you may change {', '.join(CHANGEABLE)}"
            )
        return replace(self, **changes)


__all__ = ["CHANGEABLE", "TrainConfig"]
