"""Whether a model answers plain ids at all, and what it raised instead, with the line of its own that did."""

import traceback
from pathlib import Path

import torch

from gnomon import errors
from gnomon.audit.target import NotApplicable, Target
from gnomon.errors import GnomonError

OURS = tuple(Path(str(package.__file__)).resolve().parent for package in (errors, torch))
REFUSES = (NotApplicable, NotImplementedError, MemoryError, torch.cuda.OutOfMemoryError)  #: no fault of the model's


def error_text(raised: BaseException) -> str:
    """What was raised, in one line, and the innermost line outside Gnomon and torch: "KeyError: 3, at model.py:24"."""
    text = f"{type(raised).__name__}: {one_line(str(raised))}"
    lines = [
        (Path(frame.f_code.co_filename).resolve(), line) for frame, line in traceback.walk_tb(raised.__traceback__)
    ]
    theirs = [(file, line) for file, line in lines if not any(file.is_relative_to(home) for home in OURS)]
    theirs = [(file, line) for file, line in theirs if not file.name.startswith("<frozen")]
    return f"{text}, at {_relative_path(theirs[-1][0])}:{theirs[-1][1]}" if theirs else text


def _relative_path(file: Path) -> str:
    """A file as seen from the current folder; by its name where it lies elsewhere."""
    return file.relative_to(Path.cwd()).as_posix() if file.is_relative_to(Path.cwd()) else file.name


def one_line(text: str) -> str:
    """Text without line breaks, cut off where it is long."""
    first = " ".join(text.split())
    return first if len(first) < 200 else first[:197] + "..."


@torch.no_grad()
def refusal(t: Target, rows: int, n: int) -> str:
    """What comes instead of logits (rows, n, V) of plain ids; "" where these come. Raises what is no fault."""
    ids = t.ids(rows, n)
    try:
        shape = t.logits(ids).shape
    except REFUSES:
        raise
    except GnomonError as unlike:
        return f"gives no logits: {unlike}"
    except Exception as raised:  # whatever a model raises where it should answer
        return f"raises {error_text(raised)}"
    return (
        "" if shape[:2] == ids.shape else f"gives logits {tuple(shape)} for ids {tuple(ids.shape)}: (B, T, V) is meant"
    )


__all__ = ["REFUSES", "error_text", "one_line", "refusal"]
