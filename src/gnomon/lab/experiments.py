"""The experiment: the same small model under each encoding, trained on short windows, measured on ever longer ones.

What differs between the models is position and nothing else: the same first weights for all the rest, the same batches
in the same order, the same number of steps, the same held-out targets (see protocols.py).
"""

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from gnomon.data import lock_folder
from gnomon.data.corpus import STDLIB
from gnomon.embed.input import Combine
from gnomon.errors import BadValue
from gnomon.lab.executor_choice import executor_for
from gnomon.lab.grid import perform, prepare_grid
from gnomon.lab.grid_report import GridReport
from gnomon.lab.prepare import Source
from gnomon.lab.report import LabReport
from gnomon.lab.settings import PUBLISHED, LabSettings, Recipe, Size, as_texts
from gnomon.positions import Spec


def extrapolation(
    positions: Sequence[str | Spec] = PUBLISHED,
    *,
    corpus: Source = STDLIB,
    train_length: int = 64,
    factors: Sequence[int] = (1, 2, 4, 8, 16),
    steps: int | None = None,
    seed: int = 0,
    seeds: int = 1,
    combine: Sequence[Combine] = ("add",),
    protocols: Sequence[str] = ("fixed",),
    trained_at: Sequence[int] = (),
    rates: Sequence[float] = (),
    model: Size | None = None,
    train: Recipe | None = None,
    folder: str | Path | None = None,
    workers: int | None = None,
    resume: bool = False,
    quiet: bool = True,
) -> LabReport:
    """Train a small model under each encoding and measure it past its training length.

    positions     names, `gn.positions.get(...)`, or text with options: "rope(base=200)"
    corpus        a Corpus, or what `Corpus.open` takes: files, folders, JSONL, "stdlib"
    train_length  tokens of the windows trained on; factors: multiples of it that are measured
    steps         of training, for each model; other settings of training: `train`; the model's size: `model`
    seed, seeds   each encoding is trained from `seeds` seeds, beginning with `seed`
    combine       "add", "concat" or both: how encodings that act at the input meet the token vectors
    protocols     "fixed", and besides it "windows" and "sliding"; see protocols.py
    trained_at    multiples of the training length at which each is trained too, as a baseline
    rates         learning rates to choose from for each encoding, in a sweep of its own
    folder        keeps the models and what was measured; without it only the report remains
    workers       processes that train at once; default: one per core, 1 is this process
    resume        take from `folder` what an interrupted call has finished

    >>> report = extrapolation(["rope", "alibi"], steps=50, train_length=16, factors=(1, 2))  # doctest: +SKIP
    >>> print(report.table())  # doctest: +SKIP
    """
    train = train or Recipe()
    settings = LabSettings(
        positions=as_texts(positions),
        combine=tuple(combine),
        protocols=tuple(protocols),
        trained_at=tuple(trained_at),
        rates=tuple(rates),
        train_length=train_length,
        factors=tuple(factors),
        seed=seed,
        seeds=seeds,
        model=model or Size(),
        train=train if steps is None else replace(train, steps=steps),
    )
    return experiment(settings, corpus, folder, workers, resume, quiet)


def experiment(
    settings: LabSettings,
    corpus: Source = STDLIB,
    folder: str | Path | None = None,
    workers: int | None = None,
    resume: bool = False,
    quiet: bool = True,
) -> LabReport:
    """Run an experiment of one panel as its settings say; the other arguments are those of `extrapolation`."""
    found = run_grid(settings, corpus, folder, workers=workers, resume=resume, quiet=quiet)
    if not isinstance(found, LabReport):
        raise BadValue("these settings list several sizes, training lengths or tasks: use gn.lab.run_grid(settings)")
    return found


def run_grid(
    settings: LabSettings,
    corpus: Source = STDLIB,
    folder: str | Path | None = None,
    *,
    workers: int | None = None,
    executor: str = "processes",
    resume: bool = False,
    quiet: bool = True,
) -> LabReport | GridReport:
    """Run a grid as its settings say: encodings, tasks, sizes, training lengths and seeds.

    executor   "serial", "processes", "ray" or "ray://HOST:PORT"

    The other arguments are those of `extrapolation`. A LabReport where it is one size and one training length on text.
    """
    with ExitStack() as stack:
        if folder is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gnomon-lab-"))
        stack.enter_context(lock_folder(folder))
        grid = prepare_grid(settings, corpus, Path(folder), quiet, resume=resume)
        return perform(grid, executor_for(executor, workers, settings.device), resume, quiet)


__all__ = ["experiment", "extrapolation", "run_grid"]
