"""A worker process: runs the jobs that come down its standard input, one after another.

Jobs and events are lines of JSON. The text to train on is not among them: workers map the file that holds its tokens.
A worker ends when the pipe from its parent closes, so that none is left behind however the parent ended.
"""

import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from importlib import import_module
from queue import SimpleQueue
from typing import Any, TextIO

from gnomon.errors import BadValue, GnomonError

Event = dict[str, Any]


def main() -> None:
    """Take jobs until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal: the parent decides
    events = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)  # what a module of the user's prints must not be taken for an event
    jobs: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin, jobs), daemon=True).start()
    while True:
        _serve(json.loads(jobs.get()), lambda event: print(json.dumps(event), file=events))


def _listen(pipe: TextIO, jobs: "SimpleQueue[str]") -> None:
    for line in pipe:
        jobs.put(line)
    os._exit(0)  # the parent has gone, or has no more jobs: nothing half-done needs to be saved


def _serve(data: Mapping[str, Any], tell: Callable[[Event], None]) -> None:
    """Run one job; whatever goes wrong is told, and the worker goes on."""
    try:
        run_here(data, tell)
        tell({"event": "done"})
    except GnomonError as error:
        tell({"event": "failed", "kind": type(error).__name__, "message": str(error)})
    except Exception as error:
        traceback.print_exc()
        tell({"event": "failed", "kind": "RuntimeError", "message": f"{type(error).__name__}: {error}"})


def run_here(data: Mapping[str, Any], tell: Callable[[Event], None]) -> None:
    """Run a job in this process."""
    import torch

    from gnomon.lab.trial import Job, run

    for module in data["modules"]:
        _import(module)
    job = Job.from_dict(dict(data))
    before = torch.get_num_threads()
    torch.set_num_threads(job.settings.threads)
    try:
        run(job, lambda step, loss: tell({"event": "step", "step": step, "loss": loss}))
    finally:
        torch.set_num_threads(before)


def _import(module: str) -> None:
    """Import a module of the user's, so that the encodings it defines are known by name."""
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        raise BadValue(
            f"a worker process cannot import {module!r}, where an encoding is defined: put it into a file that can be "
            "imported, or run with one worker, which is the calling process"
        ) from error


__all__ = ["Event", "main", "run_here"]
