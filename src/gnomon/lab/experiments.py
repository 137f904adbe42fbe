"""The experiment: the same small model under each encoding, trained on short windows, measured on ever longer ones.

What differs between the models is position and nothing else: the same first weights for all the rest, the same batches
in the same order, the same number of steps, the same held-out targets (see protocols.py).
"""

import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from gnomon.data import lock_folder
from gnomon.data.corpus import STDLIB
from gnomon.embed.input import Combine
from gnomon.errors import BadValue
from gnomon.glossary import words
from gnomon.lab.executor_choice import executor_for
from gnomon.lab.executors import Executor, run_cells
from gnomon.lab.live_table import LiveTable
from gnomon.lab.machine import machine
from gnomon.lab.prepare import Lab, Source, prepare
from gnomon.lab.progress import Progress
from gnomon.lab.report import LabReport, Measured, Swept, bits_of_targets, make_report
from gnomon.lab.settings import PUBLISHED, LabSettings, Recipe, Size, as_texts
from gnomon.lab.store import Store
from gnomon.lab.trial import TrialResult
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
    """Run an experiment as its settings say; the other arguments are those of `extrapolation`."""
    with ExitStack() as stack:
        if folder is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gnomon-lab-"))
        stack.enter_context(lock_folder(folder))
        return perform(
            prepare(settings, corpus, Path(folder), quiet),
            executor_for("processes", workers, settings.device),
            resume,
            quiet,
        )


def perform(lab: Lab, executor: Executor, resume: bool = False, quiet: bool = True, lang: str = "en") -> LabReport:
    """Train and measure what is left to do of a prepared experiment, and report on all of it.

    lang: of what is said on the way
    """
    began = time.perf_counter()
    store = Store(lab.folder)
    with Progress(quiet) as progress:
        lab, sweep = with_best_rates(lab, store, executor, progress, resume)
        cells, baselines = lab.cells(), lab.baselines()
        table = LiveTable(lab, words("lab", lang))
        reused = [cell.label for cell in cells if resume and store.find(cell) is not None]
        if reused:
            progress.say(table.taken(reused))
        progress.say("\n".join(table.heading))
        found: dict[str, TrialResult] = {}
        shown = {cell.key for cell in cells}
        for done in run_cells([*cells, *baselines.values()], store, executor, progress, resume):
            result = found[done.cell.key] = TrialResult.from_result(done.result)
            if done.cell.key in shown:
                progress.say(table.line(result))
    spent = time.perf_counter() - began
    workers = executor.workers_for(cells)
    about = {
        "corpus": lab.about,
        "machine": {**machine(), "workers": workers, "threads per worker": lab.settings.threads},
        "seconds": {"prepare": lab.seconds, "train and measure": spent, "total": lab.seconds + spent},
        "reused": reused,
    }
    measured = Measured([found[cell.key] for cell in cells], {key: found[c.key] for key, c in baselines.items()}, sweep)
    return make_report(lab.settings, measured, lab.targets, lab.trigram, about)


def with_best_rates(
    lab: Lab, store: Store, executor: Executor, progress: Progress, resume: bool
) -> tuple[Lab, list[Swept]]:
    """The same with the learning rate that was best for each encoding, and what the sweep found; unchanged where
    the settings list no rates."""
    cells = lab.sweep()
    if not cells:
        return lab, []
    found = {
        done.cell.key: done.result["nats"]
        for done in run_cells(list(cells.values()), store, executor, progress, resume)
    }
    bits = {key: bits_of_targets(lab.targets, found[cell.key]) for key, cell in cells.items()}
    swept, best = [], {}
    for text in lab.settings.positions:
        mine = {rate: bits[text, rate] for rate in lab.settings.rates}
        finite = {rate: value for rate, value in mine.items() if value is not None}
        if not finite:
            raise BadValue(f"no learning rate of {sorted(mine)} trains {text} without overflow: give lower ones")
        best[text] = min(finite, key=lambda rate: finite[rate])
        swept += [Swept(text, rate, value, rate == best[text]) for rate, value in mine.items()]
    train = replace(lab.settings.train, lr_of={**lab.settings.train.lr_of, **best})
    return replace(lab, settings=replace(lab.settings, train=train)), swept


__all__ = ["experiment", "extrapolation", "perform"]
