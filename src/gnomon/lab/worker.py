"""A worker process: runs the cells that come down its standard input, one after another.

Cells and events are lines of JSON. The text to train on is not among them: workers map the file that holds its tokens.
A worker ends when the pipe from its parent closes, so that none is left behind however the parent ended.
"""

import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TextIO

from gnomon.errors import BadInput, BadValue, GnomonError
from gnomon.lab.cell import Cell, Result, from_dict
from gnomon.lab.torchrun import run_together

Event = dict[str, Any]


def main() -> None:
    """Take cells until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal: the parent decides
    events = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)  # what a module of the user's prints must not be taken for an event
    jobs: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin, jobs), daemon=True).start()
    while True:
        serve(json.loads(jobs.get()), lambda event: print(json.dumps(event), file=events))


def _listen(pipe: TextIO, jobs: "SimpleQueue[str]") -> None:
    for line in pipe:
        jobs.put(line)
    os._exit(0)  # the parent has gone, or has no more cells: nothing half-done needs to be saved


def serve(data: Mapping[str, Any], tell: Callable[[Event], None]) -> None:
    """Run one cell, `data` being its `to_dict` and the `folder` for its files; whatever goes wrong is told."""
    try:
        result = run_here(from_dict(data), Path(data["folder"]), tell)
        tell({"event": "result", "result": result})
    except GnomonError as error:
        tell({"event": "failed", "kind": type(error).__name__, "message": str(error)})
    except Exception as error:
        traceback.print_exc()
        tell({"event": "failed", "kind": "RuntimeError", "message": f"{type(error).__name__}: {error}"})


def run_here(cell: Cell, folder: Path, tell: Callable[[Event], None]) -> Result:
    """Run a cell in this process, with as many threads as it asks for; under torchrun where it needs several GPUs."""
    import torch

    from gnomon.train.ranks import launched

    if cell.n_gpus > 1 and not launched():
        return _run_under_torchrun(cell, folder, tell)

    def step(share: float, text: str = "") -> None:
        tell({"event": "step", "share": share, "text": text})

    before = torch.get_num_threads()
    torch.set_num_threads(cell.n_threads)
    try:
        result = cell.run(folder, step)
    finally:
        torch.set_num_threads(before)
    # as it will be read back: a tuple is a list, in whatever process the cell ran
    read_back: Result = json.loads(json.dumps(result, allow_nan=False))
    return read_back


def _run_under_torchrun(cell: Cell, folder: Path, tell: Callable[[Event], None]) -> Result:
    ended: list[Event] = []

    def hear(event: Event) -> None:
        if event["event"] == "step":
            tell(event)
        else:
            ended.append(event)

    run_together(cell, folder, hear)
    if not ended:
        raise BadInput(f"torchrun gave no result for {cell.label!r}")
    if ended[-1]["event"] == "failed":
        raise error_of(ended[-1])
    result: Result = ended[-1]["result"]
    return result


def error_of(event: Event) -> Exception:
    """What a failed cell raised, in its kind."""
    known: dict[str, type[GnomonError]] = {"BadInput": BadInput, "BadValue": BadValue, "NotFinite": BadValue}
    return known.get(event["kind"], RuntimeError)(event["message"])


__all__ = ["Event", "error_of", "main", "run_here", "serve"]
