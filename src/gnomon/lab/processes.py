"""Several cells at once: each worker is a process of its own, started afresh, with a fixed number of threads.

Processes are started from the installed package (`gnomon.lab.worker`), not forked and not by importing the caller's
script again, so that a notebook, a script without a main guard or a pipe can call the lab.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue

from gnomon.errors import BadInput
from gnomon.lab.cell import Cell
from gnomon.lab.executors import TRIES, Endings, Hear, Serial, useful
from gnomon.lab.store import Store
from gnomon.lab.worker import Event, error_of


@dataclass(frozen=True)
class Task:
    """A cell on its way to a worker, for the how-manieth time, and where its files go."""

    cell: Cell
    folder: Path
    tries: int = 1


Todo = SimpleQueue[Task]
Events = SimpleQueue[tuple[Task, Event]]


@dataclass(frozen=True)
class Processes:
    """`workers` cells at a time; one worker is this process."""

    workers: int | None = None

    def workers_for(self, cells: Sequence[Cell]) -> int:
        """How many processes are worth starting."""
        return useful(self.workers, cells)

    def run(self, cells: Sequence[Cell], store: Store, hear: Hear) -> Endings:
        """Run all of them. Whatever ends the call, Ctrl-C too, ends the workers."""
        many = self.workers_for(cells)
        if many == 1:
            yield from Serial().run(cells, store, hear)
            return
        todo: Todo = SimpleQueue()
        events: Events = SimpleQueue()
        for cell in cells:
            todo.put(Task(cell, store.new_draft()))
        left, threads = len(cells), max(cell.n_threads for cell in cells)
        with _workers(many, threads, todo, events) as workers:
            while left:
                task, event = events.get()
                if event["event"] == "failed":
                    raise error_of(event)
                if event["event"] == "died":
                    _try_again(task, event, store, todo, hear)
                    workers.start()
                elif event["event"] == "result":
                    left -= 1
                    yield task.cell, event["result"], task.folder
                else:
                    hear(task.cell, event)


def _try_again(task: Task, event: Event, store: Store, todo: Todo, hear: Hear) -> None:
    """Queue the cell of a worker that died; BadInput where it has taken down enough of them."""
    if task.tries >= TRIES:
        raise BadInput(f"the worker at {task.cell.label!r} {event['how']}, for the {task.tries}th time: give it up")
    hear(task.cell, {"event": "again", "text": event["how"]})
    todo.put(Task(task.cell, store.new_draft(), task.tries + 1))


class _Workers:
    """Processes, each fed by a thread of ours."""

    def __init__(self, threads: int, todo: Todo, events: Events) -> None:
        self.threads, self.todo, self.events = threads, todo, events
        self.running: list[tuple[subprocess.Popen[str], threading.Thread]] = []

    def start(self) -> None:
        """One more."""
        process = _start(self.threads)
        feeder = threading.Thread(target=partial(_feed, process, self.todo, self.events), daemon=True)
        self.running.append((process, feeder))
        feeder.start()

    def end(self) -> None:
        """No more."""
        for process, _ in self.running:
            process.kill()
        for process, feeder in self.running:
            feeder.join()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):  # what was not read by a dead worker cannot be flushed
                    pipe.close()  # type: ignore[union-attr]


@contextmanager
def _workers(many: int, threads: int, todo: Todo, events: Events) -> Iterator[_Workers]:
    """Workers inside the `with`; after it, none."""
    workers = _Workers(threads, todo, events)
    try:
        for _ in range(many):
            workers.start()
        yield workers
    finally:
        workers.end()


def _start(threads: int) -> "subprocess.Popen[str]":
    """A worker that finds the modules this process finds."""
    environment = os.environ | {
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        # glibc returns large blocks to the system at once and asks for them again at the next step: keep them
        "MALLOC_MMAP_THRESHOLD_": str(2**30),
        "MALLOC_TRIM_THRESHOLD_": str(2**30),
    }
    # not by PYTHONPATH: a user's file called encodings.py would stand before Python's own when it starts
    begin = "import sys; sys.path[:] = sys.argv[1:]; from gnomon.lab.worker import main; main()"
    command = [sys.executable, "-P", "-c", begin, *(path or os.getcwd() for path in sys.path)]
    with _interrupts_held():
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True, encoding="utf-8"
        )


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """A process started inside begins, and stays, with Ctrl-C held back from it: a worker that is still importing must
    not answer for the parent. One that comes meanwhile reaches this process afterwards."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows: the worker ignores it once it runs
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _feed(process: "subprocess.Popen[str]", todo: Todo, events: Events) -> None:
    """Give one worker cell after cell, and pass on what it tells."""
    assert process.stdin is not None
    assert process.stdout is not None
    while True:
        try:
            task = todo.get_nowait()
        except Empty:
            return
        data = {**task.cell.to_dict(), "folder": str(task.folder.absolute())}
        try:
            process.stdin.write(json.dumps(data) + "\n")
            process.stdin.flush()
        except OSError:  # it has died, which the end of its output will say
            pass
        for line in process.stdout:
            event = json.loads(line)
            events.put((task, event))
            if event["event"] in ("result", "failed"):
                break
        else:
            events.put((task, _died(process)))
            return


def _died(process: "subprocess.Popen[str]") -> Event:
    code = process.wait()
    how = f"was ended by signal {-code} (out of memory?)" if code < 0 else f"ended with code {code}"
    return {"event": "died", "how": how}


__all__ = ["Processes"]
