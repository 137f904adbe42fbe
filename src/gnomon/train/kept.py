"""Models of a run besides its last one: the saves before it, the best so far, the average. Each model is a run folder.

    RUN/checkpoints/step-400/   one of the last `keep` saves, whole: it can be resumed once it is copied elsewhere
    RUN/best/                   the model of the least held-out loss
    RUN/average/                the average of the weights
    RUN/adapter/                changes of low rank, as an adapter of peft

Files that are there already are linked, not written again. Any of these can go missing and the run still resumes.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from gnomon.checkpoints.native import WEIGHTS
from gnomon.checkpoints.staging import DRAFT, draft
from gnomon.errors import BadInput, BadValue
from gnomon.models import Model
from gnomon.train.lora import lora_shell, lora_weights
from gnomon.train.lora_files import save_lora
from gnomon.train.ranks import ALONE, Ranks
from gnomon.train.state import AVERAGE, TRAINING, state_folder

CHECKPOINTS, BEST, ADAPTER = "checkpoints", "best", "adapter"
LOGS = ("metrics.jsonl",)  # these grow where they are, so a link would grow too


def keep_last(folder: Path, step: int, keep: int) -> None:
    """Keep the save that a run folder holds, which is of `step`, and remove those before the last `keep`.

    BadInput where it cannot be kept; the save itself is whole then.
    """
    into = folder / CHECKPOINTS
    if keep > 1 and not (into / f"step-{step}").exists():
        new = folder / f"{DRAFT}{CHECKPOINTS}"  # swept with other drafts, if we are killed here
        try:
            shutil.rmtree(new, ignore_errors=True)
            for path in _of_a_save(folder, step):
                _link(path, new / path.relative_to(folder))
            into.mkdir(exist_ok=True)
            os.replace(new, into / f"step-{step}")
        except OSError as error:
            raise BadInput(f"cannot write {into}: {error.strerror}; step {step} is saved in {folder}") from error
    saved = sorted(into.glob("step-*"), key=_number) if into.is_dir() else []
    for old in saved[: -keep if keep > 1 else None]:
        shutil.rmtree(old, ignore_errors=True)
    if keep == 1:
        with suppress(OSError):  # there is none, or somebody put something else there
            into.rmdir()


def show_average(folder: Path, step: int) -> None:
    """Put the average of the weights where people look for a model."""
    source = state_folder(folder, step) / AVERAGE
    if source.is_dir():
        with draft(folder / AVERAGE) as new:
            for path in source.iterdir():
                _link(path, new / path.name)


def show_adapter(folder: Path, model: Model, base: object, ranks: Ranks = ALONE) -> None:
    """Put changes of low rank where other libraries find them, if one of these can hold such a model. Every process
    must ask."""
    changes = lora_weights(model)
    if changes and ranks.first:
        with suppress(BadValue):
            save_lora(lora_shell(model, changes), folder / ADAPTER, base=base if isinstance(base, str) else None)


def _of_a_save(folder: Path, step: int) -> Iterator[Path]:
    yield from (path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith("."))
    yield from (path for path in sorted((folder / TRAINING / f"step-{step}").rglob("*")) if path.is_file())


def _link(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if path.name not in LOGS:
        with suppress(OSError):  # a disk without links
            os.link(path, target)
            return
    shutil.copy2(path, target)


def _number(path: Path) -> int:
    digits = path.name.removeprefix("step-")
    return int(digits) if digits.isdecimal() else -1


__all__ = ["BEST", "CHECKPOINTS", "WEIGHTS", "keep_last", "show_adapter", "show_average"]
