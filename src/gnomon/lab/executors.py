"""Where the cells of a grid run: in this process, in processes beside each other, or on a Ray cluster.

    store = Store(folder)
    for done in run_cells(cells, store, executor_for("processes", workers=2), watch=Bar()):
        print(done.cell.label, done.result)          # as they end; what the store knew comes first

`executor_for` (executor_choice.py) takes "serial", "processes" (the default), "ray" (a cluster of its own) and
"ray://host:10001" (an existing one). All give the same results: a cell depends on nothing but its settings. A worker
that dies, from lack of memory say, loses only what it was at: another takes the cell again, TRIES times in all. An
error of the cell itself, which would come again, ends the call; results that were there before stay in the store.
"""

import shutil
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gnomon.lab.cell import Cell, Result
from gnomon.lab.machine import cores
from gnomon.lab.store import Store
from gnomon.lab.worker import Event, run_here

TRIES = 3  # workers a cell may take down with it

Hear = Callable[[Cell, Event], None]  #: {"event": "step", "share": 0.5, "text": "loss 2.31"}, or "again" with a "text"
Ended = tuple[Cell, Result, Path]  #: and the folder with the files it made
Endings = Generator[Ended, None, None]


class Executor(Protocol):
    """Runs cells in any order; each that ends is yielded with a draft folder of the store that holds its files.

    Ending the iteration early ends all workers.
    """

    def run(self, cells: Sequence[Cell], store: Store, hear: Hear) -> Endings:
        """Run all of them."""
        ...

    def workers_for(self, cells: Sequence[Cell]) -> int:
        """How many would run at once."""
        ...


class Watch(Protocol):
    """Shows people how a grid is getting on, for example `progress.Progress`."""

    def begin(self, cells: Sequence[Cell]) -> None:
        """These are left to run."""
        ...

    def take(self, cell: Cell, event: Event) -> None:
        """One of them tells something; its last event is {"event": "done"}."""
        ...


@dataclass(frozen=True)
class Done:
    """A cell and its result. reused: the store had it."""

    cell: Cell
    result: Result
    folder: Path
    reused: bool


def run_cells(
    cells: Sequence[Cell], store: Store, executor: Executor, watch: Watch | None = None, resume: bool = True
) -> Iterator[Done]:
    """Results of all cells: those that the store knows at once, then the others as they end, kept in the store first.

    resume: False computes all anew. Cells that are the same are computed once.
    """
    store.sweep()
    different = list({cell.key: cell for cell in cells}.values())
    known = {cell.key: result for cell in different if resume and (result := store.find(cell)) is not None}
    left = [cell for cell in different if cell.key not in known]
    if watch is not None:
        watch.begin(left)
    for cell in different:
        if cell.key in known:
            yield Done(cell, known[cell.key], store.folder(cell), reused=True)
    hear: Hear = watch.take if watch is not None else (lambda cell, event: None)
    endings = executor.run(left, store, hear)
    try:
        for cell, result, made in endings:
            folder = store.keep(cell, result, made)
            shutil.rmtree(made, ignore_errors=True)
            hear(cell, {"event": "done"})
            yield Done(cell, result, folder, reused=False)
    finally:
        endings.close()
        store.sweep()


@dataclass(frozen=True)
class Serial:
    """One cell after another in this process: for encodings typed into a notebook, and for a debugger."""

    def run(self, cells: Sequence[Cell], store: Store, hear: Hear) -> Endings:
        """Run all of them."""
        for cell in cells:
            with store.draft() as folder:
                yield cell, run_here(cell, folder, lambda event, cell=cell: hear(cell, event)), folder  # type: ignore[misc]

    def workers_for(self, cells: Sequence[Cell]) -> int:
        """One."""
        return 1


def useful(workers: int | None, cells: Sequence[Cell]) -> int:
    """How many processes are worth starting for cells: one per core. One where a cell lives in this process alone,
    being typed into a notebook or a script."""
    if not cells or any("__main__" in (*cell.modules, type(cell).__module__) for cell in cells):
        return 1
    if workers is None:
        workers = max(1, cores() // max(cell.n_threads for cell in cells))
    return max(1, min(workers, len(cells)))


__all__ = ["TRIES", "Done", "Endings", "Executor", "Hear", "Serial", "Watch", "run_cells", "useful"]
