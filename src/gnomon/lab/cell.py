"""A cell of a grid: one thing to compute, a pure function of its settings.

A kind of cell is a frozen dataclass whose fields are plain data (numbers, text, tuples, other such dataclasses):

    @dataclass(frozen=True)
    class Copy(Cell):
        position: str
        length: int
        seed: int = 0

        @property
        def label(self) -> str:
            return f"copy-{self.position}"

        def run(self, folder: Path, tell: Tell) -> Result:
            ...                          # train, calling tell(0.5, "loss 2.31") now and then
            save_model(model, folder)    # files that are to stay beside the result; optional
            return {"exact": 0.93}       # plain data for JSON

Two cells with the same fields have the same `key`, a SHA-256 of what decides their result: the fields, the code that
`code` names and the versions of the libraries. By it a `Store` (store.py) finds what was computed before, and executors
(executors.py) run what was not: here, in processes, or on a Ray cluster. So `run` reads nothing but its fields (and
files whose fingerprints are among them, see `needs`), and draws random numbers from its seed alone.
"""

import hashlib
import inspect
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, fields, is_dataclass
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

from gnomon.errors import BadInput, BadValue
from gnomon.lab.machine import LIBRARIES, machine

Tell = Callable[[float, str], None]  #: the share that is done, 0 to 1, and a few words for people such as "loss 2.31"
Result = dict[str, Any]  #: what a cell returns: plain data for JSON, without NaN


class Cell(ABC):
    """What every kind of cell has; see the module for how to write one.

    apart: names of fields that do not decide the result, such as what a process must import first
    """

    apart: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def label(self) -> str:
        """What people call it. Its folder is named by it: cells that differ may share a label."""

    @abstractmethod
    def run(self, folder: Path, tell: Tell) -> Result:
        """Compute the result. Files written into `folder`, which is empty, stay beside it."""

    @property
    def work(self) -> float:
        """How much there is to do, in any unit that the cells of a grid share: the time left is told by it."""
        return 1.0

    @property
    def n_threads(self) -> int:
        """Threads to compute with. The order of sums depends on it, so it belongs to the settings."""
        return 1

    @property
    def n_gpus(self) -> int:
        """Processes with a GPU each that the cell needs; above 1 it runs under torchrun."""
        return 1

    @property
    def on_gpu(self) -> bool:
        """Whether it computes on a GPU, which a cluster then finds room for."""
        return False

    @property
    def modules(self) -> tuple[str, ...]:
        """Modules of the user's that a process must import before it can run the cell. They are not part of its key:
        what they define is, by `code`."""
        return ()

    def code(self) -> Iterable[type]:
        """Classes outside the cell whose source decides the result, such as encodings: a change is another cell."""
        return ()

    def needs(self) -> Iterable[Path]:
        """Files below Gnomon's cache folder that `run` reads; a machine without them is sent them."""
        return ()

    @cached_property
    def key(self) -> str:
        """SHA-256, in hexadecimal, of all that decides the result."""
        data = self.to_dict()
        facts = {
            "cell": data["cell"],
            "settings": {name: value for name, value in data["settings"].items() if name not in self.apart},
            "code": [source_of(kind) for kind in self.code()],
            "versions": _versions(),
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    @property
    def folder_name(self) -> str:
        """The label as the name of a folder."""
        return re.sub(r"[^\w.=-]+", "-", self.label).strip("-") or "cell"

    def to_dict(self) -> dict[str, Any]:
        """As data for JSON; `from_dict` brings it back."""
        assert is_dataclass(self)
        kind = type(self)
        return {
            "cell": f"{kind.__module__}:{kind.__qualname__}",
            "settings": json.loads(json.dumps(asdict(self), allow_nan=False)),
            "modules": list(self.modules),
        }


def from_dict(data: Mapping[str, Any]) -> Cell:
    """The cell that `to_dict` wrote down. BadValue where this process cannot import what it needs."""
    module, _, name = data["cell"].partition(":")
    for needed in data["modules"]:
        _import(needed)
    kind = getattr(_import(module), name, None)
    if not (isinstance(kind, type) and issubclass(kind, Cell)):
        raise BadInput(f"{data['cell']} is no kind of cell in this version of Gnomon: run the grid again")
    cell: Cell = restored(kind, data["settings"])
    return cell


def restored(kind: Any, data: Any) -> Any:
    """Plain data as what an annotation says: dataclasses from tables, tuples from lists, the rest as it is."""
    if is_dataclass(kind) and isinstance(data, Mapping):
        hints = get_type_hints(kind)
        return kind(**{f.name: restored(hints[f.name], data[f.name]) for f in fields(kind) if f.name in data})  # type: ignore[operator]
    inner = get_args(kind)
    if get_origin(kind) is tuple and isinstance(data, list):
        kinds = inner[:1] * len(data) if inner[-1] is ... else inner
        return tuple(restored(one, value) for one, value in zip(kinds, data, strict=True))
    return next((restored(one, data) for one in inner if is_dataclass(one) and isinstance(data, Mapping)), data)


def source_of(kind: type) -> str:
    """Fingerprint of the code of a class; empty for one that was typed into an interpreter."""
    try:
        return hashlib.sha256(inspect.getsource(kind).encode()).hexdigest()
    except (OSError, TypeError):
        return ""


def _import(module: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise BadValue(
            f"a worker process cannot import {module!r}, where an encoding is defined: put it into a file that can be "
            "imported, or run with one worker, which is the calling process"
        ) from error


@cache
def _versions() -> dict[str, str | int]:
    found = machine()
    return {name: found[name] for name in LIBRARIES}


__all__ = ["Cell", "Result", "Tell", "from_dict", "restored", "source_of"]
