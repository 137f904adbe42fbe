"""Results of cells in a folder, found by content: what was computed once is not computed again.

    store = Store("runs/mine")
    store.find(cell)                 # the result, or None
    with store.draft() as folder:    # an empty folder beside the results
        store.keep(cell, cell.run(folder, tell), folder)

Each cell has a folder of its own, named by its label (`rope`), and where a different cell has that name already, by
its label and key (`rope-1f3a9c02`). The result is the file `measured.json`, written last and whole: where it is, the
cell is complete. So a grid that was killed goes on with what is missing, and a changed grid computes what changed.
Nothing is ever removed but what a killed process left half-written.
"""

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gnomon.checkpoints.native import read_json
from gnomon.checkpoints.staging import DRAFT, sweep
from gnomon.data import atomic
from gnomon.errors import BadInput
from gnomon.lab.cell import Cell, Result

MEASURED = "measured.json"
FORMAT = 2  # of that file
SHORT = 8  # digits of a key in the name of a folder


class Store:
    """The results in one folder. One process writes into it; the caller locks it (`gnomon.data.locked`)."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self._folders: dict[str, Path] = {}  # by key
        for file in sorted(self.root.glob(f"*/{MEASURED}")):
            key = _read(file).get("key")
            if isinstance(key, str):
                self._folders[key] = file.parent

    def find(self, cell: Cell) -> Result | None:
        """What was measured of this very cell, if it was and the file is whole."""
        folder = self._folders.get(cell.key)
        found = {} if folder is None else _read(folder / MEASURED)
        result = found.get("result")
        return result if found.get("key") == cell.key and isinstance(result, dict) else None

    def folder(self, cell: Cell) -> Path:
        """Where the cell is kept, or will be."""
        key = cell.key
        if key not in self._folders:
            first = self.root / cell.folder_name
            taken = first in self._folders.values() or (first / MEASURED).exists() or first.is_file()
            self._folders[key] = first.with_name(f"{first.name}-{key[:SHORT]}") if taken else first
        return self._folders[key]

    @contextmanager
    def draft(self) -> Iterator[Path]:
        """An empty folder in the store, gone after the block but for what `keep` took."""
        folder = self.new_draft()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def new_draft(self) -> Path:
        """An empty folder for files of a cell under way; `sweep` removes those that killed processes left."""
        folder = self.root / f"{DRAFT}{os.getpid()}-{secrets.token_hex(4)}"
        folder.mkdir(parents=True)
        return folder

    def sweep(self) -> None:
        """Remove what killed processes left."""
        if self.root.is_dir():
            sweep(self.root)

    def keep(self, cell: Cell, result: Result, made: Path | None = None) -> Path:
        """Keep a result, and the files in the folder `made`; returns the cell's folder."""
        folder = self.folder(cell)
        content = {"format": FORMAT, "key": cell.key, **cell.to_dict(), "result": result}
        text = json.dumps(content, allow_nan=False, ensure_ascii=False)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for path in sorted(made.rglob("*")) if made is not None else []:
                if path.is_file():
                    target = folder / path.relative_to(made or path)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    os.replace(path, target)
        except OSError as error:
            raise BadInput(f"cannot write {folder}: {error.strerror or error}") from error
        with atomic(folder / MEASURED) as file:
            file.write((text + "\n").encode())
        return folder


def _read(file: Path) -> dict[str, Any]:
    """A result as it was written; empty where the file is missing, damaged or of another version."""
    try:
        data = read_json(file)
    except BadInput:
        return {}
    return data if isinstance(data, dict) and data.get("format") == FORMAT else {}


__all__ = ["MEASURED", "Store"]
