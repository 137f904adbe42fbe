"""Cells on a Ray cluster: an existing one, or one of this machine's own.

A cell travels as plain data. Files of the cache that it needs, such as a tokenised text, are put into the cluster's
object store once, and unpacked on each machine that lacks them; modules of the user's travel as source. What a cell
leaves in its folder comes back as bytes, so that no machine needs to share a disk with another. Ray starts a worker
that died again, and the cell with it; a machine that left the cluster takes no cell with it.
"""

import importlib.util
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from gnomon.data.files import cache_folder
from gnomon.errors import BadInput, BadValue
from gnomon.lab.cell import Cell, Result
from gnomon.lab.executors import TRIES, Endings, Hear
from gnomon.lab.store import Store
from gnomon.lab.worker import Event, error_of, serve

Files = dict[str, bytes]  # path below a folder -> what is in it
POLL = 0.2  # seconds between two looks at what cells tell


@dataclass(frozen=True)
class RayCluster:
    """address: ray://HOST:PORT of an existing cluster; None: what `ray.init` finds or starts here. workers: at most so
    many cells at once."""

    address: str | None = None
    workers: int | None = None

    def workers_for(self, cells: Sequence[Cell]) -> int:
        """As many as the cluster has cores for; known once it is connected."""
        return max(1, min(self.workers or len(cells), len(cells)))

    def run(self, cells: Sequence[Cell], store: Store, hear: Hear) -> Endings:
        """Run all of them; results come as they end."""
        if not cells:
            return
        ray = _ray()
        ours = not ray.is_initialized()
        if ours:
            self._connect(ray, cells)
        try:
            yield from _Grid(ray, cells, store, hear, self.workers).results()
        finally:
            if ours:
                ray.shutdown()

    def _connect(self, ray: Any, cells: Sequence[Cell]) -> None:
        os.environ.setdefault("RAY_DEDUP_LOGS", "0")
        known: dict[str, Any] = {"address": self.address} if self.address else {}
        if not self.address and self.workers and "RAY_ADDRESS" not in os.environ:
            known["num_cpus"] = self.workers * max(cell.n_threads for cell in cells)
        try:
            ray.init(log_to_driver=False, logging_level="ERROR", configure_logging=False, **known)
        except (ConnectionError, RuntimeError, ValueError) as error:
            where = self.address or os.environ.get("RAY_ADDRESS", "this machine")
            raise BadInput(f"no Ray cluster answers at {where}: {error}") from error


class _Grid:
    """Cells under way on a cluster, at most `workers` at once."""

    def __init__(self, ray: Any, cells: Sequence[Cell], store: Store, hear: Hear, workers: int | None) -> None:
        self.ray, self.store, self.hear, self.workers = ray, store, hear, workers
        self.waiting = list(reversed(cells))
        self.running: dict[Any, Cell] = {}
        self.news = ray.remote(num_cpus=0)(_News).remote()
        needed = dict.fromkeys(path for cell in cells for path in cell.needs())
        cache = cache_folder()
        self.shared = {str(path.relative_to(cache)): ray.put(path.read_bytes()) for path in needed}
        self.modules = _sources(cells)

    def results(self) -> Endings:
        try:
            while self.waiting or self.running:
                self._fill()
                ready, _ = self.ray.wait(list(self.running), num_returns=1, timeout=POLL)
                self._listen()
                for ref in ready:
                    yield self._end(ref, self.running.pop(ref))
        finally:
            for ref in self.running:
                self.ray.cancel(ref, force=True)

    def _fill(self) -> None:
        while self.waiting and (self.workers is None or len(self.running) < self.workers):
            cell = self.waiting.pop()
            mine = [str(path.relative_to(cache_folder())) for path in cell.needs()]
            room = {"num_gpus": cell.n_gpus} if cell.on_gpu else {}
            task = self.ray.remote(_remotely).options(
                num_cpus=cell.n_threads, max_retries=TRIES - 1, name=cell.label, **room
            )
            shared = {name: self.shared[name] for name in mine}
            ref = task.remote(cell.to_dict(), cell.key, self.news, self.modules, list(shared), *shared.values())
            self.running[ref] = cell

    def _listen(self) -> None:
        by_key = {cell.key: cell for cell in self.running.values()}
        for key, event in self.ray.get(self.news.take.remote()):
            if key in by_key:
                self.hear(by_key[key], event)

    def _end(self, ref: Any, cell: Cell) -> tuple[Cell, Result, Path]:
        try:
            event, made = self.ray.get(ref)
        except self.ray.exceptions.RayError as error:
            first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise BadInput(f"the Ray worker at {cell.label!r} was lost {TRIES} times: {first}") from error
        if event["event"] == "failed":
            raise error_of(event)
        folder = self.store.new_draft()
        _unpack(made, folder)
        return cell, event["result"], folder


class _News:
    """An actor that holds what cells tell until the caller asks."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Event]] = []

    def tell(self, key: str, event: Event) -> None:
        self.events.append((key, event))

    def take(self) -> list[tuple[str, Event]]:
        events, self.events = self.events, []
        return events


def _remotely(
    data: dict[str, Any], key: str, news: Any, modules: dict[str, str], names: list[str], *contents: bytes
) -> tuple[Event, Files]:
    """Run a cell on the cluster: its last event, and the files it made."""
    with tempfile.TemporaryDirectory(prefix="gnomon-cell-") as scratch:
        _make_known(modules, Path(scratch) / "modules")
        for name, content in zip(names, contents, strict=True):
            if not (cache_folder() / name).exists():
                from gnomon.data import atomic

                with atomic(cache_folder() / name) as file:
                    file.write(content)
        last: list[Event] = []

        def tell(event: Event) -> None:
            last[:] = [event]
            if event["event"] == "step":
                news.tell.remote(key, event)

        folder = Path(scratch) / "cell"
        folder.mkdir()
        serve({**data, "folder": str(folder)}, tell)
        return last[0], {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def _sources(cells: Sequence[Cell]) -> dict[str, str]:
    """Source of the modules of the user's and of the cells', where they are single files outside packages."""
    found = {}
    for name in dict.fromkeys(name for cell in cells for name in (*cell.modules, type(cell).__module__)):
        if name == "__main__":
            raise BadValue("cells and encodings defined in a script cannot travel to a cluster: put them into a module")
        file = getattr(sys.modules.get(name) or import_module(name), "__file__", None)
        if file and "." not in name:
            found[name] = Path(file).read_text(encoding="utf-8")
    return found


def _make_known(modules: dict[str, str], folder: Path) -> None:
    for name, source in modules.items():
        with suppress(ModuleNotFoundError, ValueError):
            if importlib.util.find_spec(name) is not None:
                continue
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
        importlib.invalidate_caches()
        import_module(name)


def _unpack(files: Files, folder: Path) -> None:
    for name, content in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def _ray() -> Any:
    try:
        return import_module("ray")
    except ModuleNotFoundError as error:
        raise BadInput("--executor ray needs the package ray: pip install 'gnomon[ray]'") from error


__all__ = ["RayCluster"]
