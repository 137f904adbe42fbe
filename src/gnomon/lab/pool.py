"""Several trials at once: each worker is a process of its own, started afresh, with a fixed number of threads.

Processes are started from the installed package (`gnomon.lab.worker`), not forked and not by importing the caller's
script again, so that a notebook, a script without a main guard or a pipe can call the lab.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from queue import Empty, SimpleQueue

from gnomon.errors import BadInput, BadValue, GnomonError
from gnomon.lab.trial import Job
from gnomon.lab.worker import Event, run_here

OnEvent = Callable[[Job, Event], None]  #: {"event": "step", "step": ..., "loss": ...} or {"event": "done"}


def run_jobs(jobs: Sequence[Job], workers: int, on_event: OnEvent) -> None:
    """Run all jobs, `workers` at a time; one worker is this process. Raises what the first failing job raised.

    Whatever ends the call, Ctrl-C too, ends the workers.
    """
    if workers <= 1:
        for job in jobs:
            run_here(json.loads(json.dumps(job.to_dict())), partial(on_event, job))
            on_event(job, {"event": "done"})
        return
    todo: SimpleQueue[Job] = SimpleQueue()
    events: SimpleQueue[tuple[Job, Event]] = SimpleQueue()
    for job in jobs:
        todo.put(job)
    with _workers(min(workers, len(jobs)), jobs[0].settings.threads, partial(_feed, todo=todo, events=events)):
        left = len(jobs)
        while left:
            job, event = events.get()
            if event["event"] == "failed":
                raise _error(event)
            left -= event["event"] == "done"
            on_event(job, event)


@contextmanager
def _workers(many: int, threads: int, feed: Callable[["subprocess.Popen[str]"], None]) -> Iterator[None]:
    """Workers inside the `with`, each fed by a thread of ours; after it, none."""
    processes = [_start(threads) for _ in range(many)]
    feeders = [threading.Thread(target=feed, args=(process,), daemon=True) for process in processes]
    try:
        for feeder in feeders:
            feeder.start()
        yield
    finally:
        for process in processes:
            process.kill()
        for feeder, process in zip(feeders, processes, strict=True):
            feeder.join()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):  # what was not read by a dead worker cannot be flushed
                    pipe.close()  # type: ignore[union-attr]


def _start(threads: int) -> "subprocess.Popen[str]":
    """A worker that finds the modules this process finds."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        # glibc returns large blocks to the system at once and asks for them again at the next step: keep them
        "MALLOC_MMAP_THRESHOLD_": str(2**30),
        "MALLOC_TRIM_THRESHOLD_": str(2**30),
    }
    command = [sys.executable, "-P", "-c", "from gnomon.lab.worker import main; main()"]
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


def _feed(process: "subprocess.Popen[str]", todo: "SimpleQueue[Job]", events: "SimpleQueue[tuple[Job, Event]]") -> None:
    """Give one worker job after job, and pass on what it tells."""
    assert process.stdin is not None
    assert process.stdout is not None
    while True:
        try:
            job = todo.get_nowait()
        except Empty:
            return
        try:
            process.stdin.write(json.dumps(job.to_dict()) + "\n")
            process.stdin.flush()
        except OSError:  # it has died, which the end of its output will say
            pass
        for line in process.stdout:
            event = json.loads(line)
            events.put((job, event))
            if event["event"] in ("done", "failed"):
                break
        else:
            events.put((job, _died(process, job)))
            return


def _died(process: "subprocess.Popen[str]", job: Job) -> Event:
    code = process.wait()
    how = f"was ended by signal {-code} (out of memory?)" if code < 0 else f"ended with code {code}"
    return {"event": "failed", "kind": "BadInput", "message": f"the worker training {job.trial.label!r} {how}"}


def _error(event: Event) -> Exception:
    known: dict[str, type[GnomonError]] = {"BadInput": BadInput, "BadValue": BadValue, "NotFinite": BadValue}
    return known.get(event["kind"], RuntimeError)(event["message"])


__all__ = ["OnEvent", "run_jobs"]
