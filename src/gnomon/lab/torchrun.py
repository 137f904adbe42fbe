"""A cell on several GPUs: torchrun starts a process for each, and they train the cell's model together.

    torchrun --standalone --nproc-per-node=2 -m gnomon.lab.torchrun_worker cell.json

`run_together` composes that command and passes on what the first process tells; each process makes the whole batch and
computes its rows of it (`gnomon.train.ranks`), so that the result is that of one process but for rounding.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gnomon.errors import BadInput
from gnomon.lab.cell import Cell

MARK = "gnomon-lab "  # before each line of output that is an event


def command(n: int, file: Path) -> list[str]:
    """The command that runs the cell in a file on n GPUs of this machine."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={n}"]
    return [*launcher, "-m", "gnomon.lab.torchrun_worker", str(file)]


def run_together(cell: Cell, folder: Path, tell: Callable[[dict[str, Any]], None]) -> None:
    """Run a cell under torchrun; `tell` gets its events, the last of which is its result or what went wrong."""
    with tempfile.TemporaryDirectory(prefix="gnomon-torchrun-") as scratch:
        file = Path(scratch) / "cell.json"
        file.write_text(json.dumps({**cell.to_dict(), "folder": str(folder.absolute())}), encoding="utf-8")
        process = subprocess.Popen(command(cell.n_gpus, file), stdout=subprocess.PIPE, text=True, encoding="utf-8")
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if line.startswith(MARK):
                    tell(json.loads(line.removeprefix(MARK)))
        finally:
            if process.poll() is None and process.stdout.closed:
                process.kill()
            process.stdout.close()
        if (code := process.wait()) != 0:
            raise BadInput(f"torchrun ended with code {code} while it trained {cell.label!r} on {cell.n_gpus} GPUs")


__all__ = ["MARK", "command", "run_together"]
