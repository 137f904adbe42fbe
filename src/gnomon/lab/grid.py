"""A grid: encodings, tasks, sizes of the model, training lengths and seeds, as cells that run in any order.

A panel is one size and one training length on text: within it encodings and seeds are comparable, and it has a report
of its own. Tasks with exact answers have a table. Of one panel and no task, its report is the result.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from gnomon.errors import BadValue
from gnomon.glossary import words
from gnomon.lab.cell import Cell, Result
from gnomon.lab.exact.cell import ExactCell
from gnomon.lab.exact.report import TaskTable, gathered
from gnomon.lab.exact.settings import ExactRecipe, ExactSize
from gnomon.lab.executors import Done, Executor, run_cells
from gnomon.lab.grid_report import GridReport
from gnomon.lab.live_table import LiveTable
from gnomon.lab.machine import machine
from gnomon.lab.prepare import Lab, Source, prepare_all
from gnomon.lab.progress import Progress
from gnomon.lab.report import LabReport, Measured, Swept, bits_of_targets, make_report
from gnomon.lab.settings import TEXT, LabSettings, size_of
from gnomon.lab.store import Store
from gnomon.lab.trial import TrialResult

LeftOut = tuple[tuple[str, dict[str, Any]], ...]


@dataclass(frozen=True)
class Grid:
    """What is to be computed, and where it is kept. left_out: what a budget had no time for."""

    settings: LabSettings
    folder: Path
    labs: tuple[Lab, ...]
    exact: tuple[ExactCell, ...]
    left_out: LeftOut = ()

    def cells(self) -> list[Cell]:
        """All but the sweeps, those that a table shows first."""
        baselines = [cell for lab in self.labs for cell in lab.baselines().values()]
        return [*(cell for lab in self.labs for cell in lab.cells()), *self.exact, *baselines]


def prepare_grid(
    settings: LabSettings,
    corpus: Source,
    folder: Path,
    quiet: bool,
    imported: Sequence[str] = (),
    resume: bool = False,
    left_out: LeftOut = (),
) -> Grid:
    """Everything that can be wrong is found here; see `prepare`."""
    labs = prepare_all(settings, corpus, folder, quiet, imported, resume)
    return Grid(settings, folder, tuple(labs), tuple(exact_cells(settings, imported)), left_out)


def exact_cells(settings: LabSettings, imported: Sequence[str] = ()) -> list[ExactCell]:
    """Those of the tasks with exact answers."""
    s, recipe = settings, ExactRecipe()
    recipe = recipe if s.task_steps is None else replace(recipe, steps=s.task_steps)
    models = [size_of(text, s.model) for text in s.sizes]
    sizes = [ExactSize(m.d_model, m.n_layers, m.n_heads) for m in models] or [ExactSize()]
    seeds = range(s.seed, s.seed + s.seeds)
    tasks = [task for task in s.tasks if task != TEXT]
    return [
        ExactCell(task, position, seed, length, model=size, train=recipe, imports=tuple(imported))
        for task, size, length, position, seed in product(tasks, sizes, s.task_lengths, s.positions, seeds)
    ]


def perform(
    grid: Grid, executor: Executor, resume: bool = False, quiet: bool = True, lang: str = "en"
) -> LabReport | GridReport:
    """Compute what is left to do of a grid, and report on all of it: a LabReport where it is one panel.

    lang: of what is said on the way
    """
    began, store = time.perf_counter(), Store(grid.folder)
    with Progress(quiet) as progress:
        swept = [with_best_rates(lab, store, executor, progress, resume) for lab in grid.labs]
        grid = replace(grid, labs=tuple(lab for lab, _ in swept))
        live = _Live(grid, store, resume, progress, lang)
        done = run_cells(grid.cells(), store, executor, progress, resume)
        found = {end.cell.key: live.show(end).result for end in done}
    spent = time.perf_counter() - began
    workers = executor.workers_for(grid.cells())
    ran = {**machine(), "workers": workers, "threads per worker": grid.settings.threads}
    panels = [
        replace(_report(lab, rates, found, ran, spent, live.reused), left_out=grid.left_out)
        for lab, rates in zip(grid.labs, (rates for _, rates in swept), strict=True)
    ]
    if len(panels) == 1 and not grid.exact:
        return panels[0]
    table = TaskTable(*gathered([(cell, found[cell.key]) for cell in grid.exact])) if grid.exact else None
    return GridReport(
        tuple(panels), table, {"machine": ran, "seconds": {"total": spent}}, grid.settings.seed, grid.left_out
    )


def _report(
    lab: Lab, rates: Sequence[Swept], found: dict[str, Result], ran: dict[str, Any], spent: float, reused: list[str]
) -> LabReport:
    trials = [TrialResult.from_result(found[cell.key]) for cell in lab.cells()]
    baselines = {key: TrialResult.from_result(found[cell.key]) for key, cell in lab.baselines().items()}
    about = {
        "corpus": lab.about,
        "machine": ran,
        "seconds": {"prepare": lab.seconds, "train and measure": spent, "total": lab.seconds + spent},
        "reused": reused,
    }
    return make_report(lab.settings, Measured(trials, baselines, rates), lab.targets, lab.trigram, about)


class _Live:
    """Lines as cells end, below the heading of their panel."""

    def __init__(self, grid: Grid, store: Store, resume: bool, progress: Progress, lang: str) -> None:
        self.progress = progress
        self.tables = [(LiveTable(lab, words("lab", lang)), {cell.key for cell in lab.cells()}) for lab in grid.labs]
        shown = [cell for lab in grid.labs for cell in lab.cells()]
        self.reused = [cell.label for cell in shown if resume and store.find(cell) is not None]
        if self.reused:
            progress.say(self.tables[0][0].taken(self.reused))
        self.last: LiveTable | None = None
        if len(self.tables) == 1:
            self._head(self.tables[0][0])

    def _head(self, table: LiveTable) -> None:
        self.progress.say("\n".join(table.heading))
        self.last = table

    def show(self, done: Done) -> Done:
        """Say a line for a cell that a table shows."""
        for table, keys in self.tables:
            if done.cell.key in keys:
                if table is not self.last:
                    self._head(table)
                self.progress.say(table.line(TrialResult.from_result(done.result)))
        return done


def with_best_rates(
    lab: Lab, store: Store, executor: Executor, progress: Progress, resume: bool
) -> tuple[Lab, list[Swept]]:
    """The same with the learning rate that was best for each encoding, and what the sweep found; unchanged where
    the settings list no rates."""
    cells = lab.sweep()
    if not cells:
        return lab, []
    ended = run_cells(list(cells.values()), store, executor, progress, resume)
    nats = {done.cell.key: done.result["nats"] for done in ended}
    bits = {key: bits_of_targets(lab.targets, nats[cell.key]) for key, cell in cells.items()}
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


__all__ = ["Grid", "exact_cells", "perform", "prepare_grid", "with_best_rates"]
