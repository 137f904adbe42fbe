"""One of the processes that torchrun starts for a cell, see torchrun.py."""

import json
import sys
import tempfile
from pathlib import Path

import torch

from gnomon.lab.cell import from_dict
from gnomon.lab.torchrun import MARK
from gnomon.lab.worker import serve
from gnomon.train.ranks import Ranks, process_group


def main(file: str) -> None:
    """The first process tells what happens and leaves the files, the others only compute."""
    data = json.loads(Path(file).read_text(encoding="utf-8"))
    on_gpu = from_dict(data).on_gpu
    with process_group(torch.device("cuda" if on_gpu else "cpu")), tempfile.TemporaryDirectory() as scratch:
        if Ranks.here().first:
            serve(data, lambda event: print(MARK + json.dumps(event), flush=True))
        else:
            serve({**data, "folder": scratch}, lambda event: None)


if __name__ == "__main__":
    main(sys.argv[1])
