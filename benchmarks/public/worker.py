"""Audit one case and print the report as JSON: python worker.py NUMBER FOLDER."""

import contextlib
import io
import json
import sys
import warnings
from pathlib import Path

import torch

sys.path.pop(0)  # modules of the checkouts come before those here
sys.path.append(str(Path(__file__).parent))
from cases import CASES
from language_models import nanogpt  # its import enters its cases, as that of the other does
from translators import jadore

import gnomon as gn
from gnomon.audit.adapters import target

ROOMS = (nanogpt.__module__, jadore.__module__)

if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    case = CASES[int(sys.argv[1])]
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            made = case.made(Path(sys.argv[2]))
            report = gn.audit(target(made), seed=0)
            told = report.as_dict() | {"last": " ".join(str(report).rpartition("\n\n")[2].split())}
        except Exception as raised:
            told = {"refused": f"{type(raised).__name__}: {raised}"}
    print(json.dumps(told))
