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

from gnomon.data import locked
from gnomon.data.corpus import STDLIB
from gnomon.device import resolve_device
from gnomon.embed.input import Combine
from gnomon.errors import BadValue
from gnomon.glossary import words
from gnomon.lab.live_table import LiveTable
from gnomon.lab.machine import cores, machine
from gnomon.lab.pool import run_jobs
from gnomon.lab.prepare import Lab, Source, finished, prepare
from gnomon.lab.progress import Progress
from gnomon.lab.report import LabReport, make_report
from gnomon.lab.settings import PUBLISHED, LabSettings, Recipe, Size, as_texts
from gnomon.lab.trial import Job, TrialResult
from gnomon.lab.worker import Event
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
        stack.enter_context(locked(folder))
        return perform(prepare(settings, corpus, Path(folder), quiet), workers, resume, quiet)


def perform(
    lab: Lab, workers: int | None = None, resume: bool = False, quiet: bool = True, lang: str = "en"
) -> LabReport:
    """Train and measure what is left to do of a prepared experiment, and report on all of it.

    lang: of what is said on the way
    """
    began = time.perf_counter()
    jobs = lab.jobs()
    reused = {job.trial: found for job in jobs if resume and (found := finished(job)) is not None}
    left = [job for job in jobs if job.trial not in reused]
    many, table = workers_for(left, workers), LiveTable(lab, words("lab", lang))
    with Progress(left, quiet) as progress:

        def take(job: Job, event: Event) -> None:
            progress.take(job, event)
            if event["event"] == "done":
                progress.say(table.line(TrialResult.load(job.folder)))

        if reused:
            progress.say(table.taken(reused))
        progress.say("\n".join([*table.heading, *map(table.line, reused.values())]))
        run_jobs(left, many, take)
    measured = [reused.get(job.trial) or TrialResult.load(job.folder) for job in jobs]
    spent = time.perf_counter() - began
    about = {
        "corpus": lab.about,
        "machine": {**machine(), "workers": many, "threads per worker": lab.settings.threads},
        "seconds": {"prepare": lab.seconds, "train and measure": spent, "total": lab.seconds + spent},
        "reused": [trial.label for trial in reused],
    }
    return make_report(lab.settings, measured, lab.targets, lab.trigram, about)


def workers_for(jobs: Sequence[Job], workers: int | None) -> int:
    """How many processes are worth starting: one per core, and one for a device that has its own.

    Encodings typed into a notebook or script live in this process alone.
    """
    if workers is not None and workers < 1:
        raise BadValue(f"workers must be at least 1, got {workers}")
    if not jobs or "__main__" in jobs[0].modules:
        return 1
    if workers is None:
        settings = jobs[0].settings
        workers = max(1, cores() // settings.threads) if resolve_device(settings.device).type == "cpu" else 1
    return min(workers, len(jobs))


__all__ = ["experiment", "extrapolation", "perform", "workers_for"]
