"""Cells are pure functions of their settings; a store finds them by content; executors lose none."""

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from gnomon.errors import BadInput, BadValue
from gnomon.lab import processes
from gnomon.lab.cell import Cell, from_dict
from gnomon.lab.executor_choice import executor_for
from gnomon.lab.executors import TRIES, Serial, run_cells, useful
from gnomon.lab.store import MEASURED, Store

CELLS = '''
import os, signal
from dataclasses import dataclass, field
from pathlib import Path
from gnomon.errors import BadValue
from gnomon.lab.cell import Cell

@dataclass(frozen=True)
class Inner:
    width: int = 2

@dataclass(frozen=True)
class Square(Cell):
    """The square of n; leaves a file; kills its worker where `deadly` names a file that is not there yet."""
    n: int
    sizes: tuple[Inner, ...] = (Inner(),)
    deadly: str = ""
    wrong: bool = False

    @property
    def label(self):
        return f"square {self.n % 10}"

    def run(self, folder, tell):
        tell(0.5, "half")
        if self.wrong:
            raise BadValue("n is wrong")
        if self.deadly and not Path(self.deadly).exists():
            Path(self.deadly).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        (folder / "n.txt").write_text(str(self.n))
        return {"square": self.n**2, "pair": (1, 2), "widths": [s.width for s in self.sizes]}
'''


@pytest.fixture
def cells(tmp_path, monkeypatch):
    """A module with a kind of cell, on the path of this process and those it starts."""
    (tmp_path / "cells_of_a_test.py").write_text(CELLS)
    monkeypatch.syspath_prepend(str(tmp_path))
    import cells_of_a_test

    yield cells_of_a_test
    del sys.modules["cells_of_a_test"]


def results(cells, store, executor=None, **more):
    return [
        (done.cell.n, done.result["square"], done.reused)
        for done in run_cells(cells, store, executor or Serial(), **more)
    ]


def test_a_cell_is_plain_data(cells):
    cell = cells.Square(3, (cells.Inner(5), cells.Inner(7)))
    again = from_dict(json.loads(json.dumps(cell.to_dict())))
    assert again == cell
    assert again.key == cell.key


def test_every_setting_and_the_versions_are_in_a_key(cells, monkeypatch):
    cell = cells.Square(3)
    others = [replace(cell, n=4), replace(cell, sizes=(cells.Inner(3),)), replace(cell, wrong=True)]
    assert len({cell.key, *(other.key for other in others)}) == 4
    monkeypatch.setattr("gnomon.lab.cell._versions", lambda: {"torch": "0"})
    assert cells.Square(3).key != cell.key


def test_changed_grids_compute_only_what_changed(cells, tmp_path):
    folder = tmp_path / "store"
    assert results([cells.Square(1), cells.Square(2)], Store(folder)) == [(1, 1, False), (2, 4, False)]
    assert results([cells.Square(2), cells.Square(3)], Store(folder)) == [(2, 4, True), (3, 9, False)]
    assert results([cells.Square(2)], Store(folder), resume=False) == [(2, 4, False)]


def test_cells_with_the_same_label_keep_apart(cells, tmp_path):
    store = Store(tmp_path / "store")
    results([cells.Square(1), cells.Square(11)], store)
    folders = [Store(store.root).folder(cells.Square(n)) for n in (1, 11)]
    assert [folder.joinpath("n.txt").read_text() for folder in folders] == ["1", "11"]
    assert folders[0].name == "square-1"
    assert folders[1].name.startswith("square-1-")


def test_results_are_the_same_here_and_read_back(cells, tmp_path):
    """A tuple is a list in both."""
    [done] = run_cells([cells.Square(3)], Store(tmp_path), Serial())
    assert done.result["pair"] == [1, 2]
    assert Store(tmp_path).find(cells.Square(3)) == done.result


@pytest.mark.parametrize("damage", ["", "{", '{"format": 2}', "[]", '{"format": 1, "key": "x", "result": {}}'])
def test_a_damaged_result_is_no_result(cells, tmp_path, damage):
    results([cells.Square(3)], Store(tmp_path / "s"))
    (tmp_path / "s" / "square-3" / MEASURED).write_text(damage)
    assert results([cells.Square(3)], Store(tmp_path / "s")) == [(3, 9, False)]


def test_an_error_ends_the_grid_and_keeps_what_was_there(cells, tmp_path):
    grid = [cells.Square(1), cells.Square(2, wrong=True), cells.Square(3)]
    with pytest.raises(BadValue, match="n is wrong"):
        results(grid, Store(tmp_path / "s"))
    assert Store(tmp_path / "s").find(grid[0]) is not None
    assert [path.name for path in (tmp_path / "s").iterdir()] == ["square-1"]  # no drafts


def test_drafts_of_a_killed_process_are_swept(cells, tmp_path):
    Store(tmp_path / "s").new_draft()
    results([cells.Square(1)], Store(tmp_path / "s"))
    assert [path.name for path in (tmp_path / "s").iterdir()] == ["square-1"]


def test_what_cells_tell_is_heard(cells, tmp_path):
    heard = []

    class Ear:
        def begin(self, cells):
            heard.append(len(cells))

        def take(self, cell, event):
            heard.append((cell.n, event["event"]))

    grid = [cells.Square(1), cells.Square(2)]
    results(grid[:1], Store(tmp_path / "s"))
    results(grid, Store(tmp_path / "s"), watch=Ear())
    assert heard == [1, (2, "step"), (2, "done")]


@pytest.mark.slow
def test_a_cell_whose_worker_dies_is_run_again(cells, tmp_path):
    grid = [cells.Square(n, deadly=str(tmp_path / "died") if n == 2 else "") for n in range(5)]
    found = results(grid, Store(tmp_path / "s"), executor_for("processes", 2))
    assert sorted(found) == [(n, n * n, False) for n in range(5)]
    assert (tmp_path / "died").exists()


@pytest.mark.slow
def test_files_beside_a_script_do_not_stand_before_pythons_own(cells, tmp_path, monkeypatch):
    (tmp_path / "encodings.py").write_text("raise ImportError('of the user, not of Python')")
    monkeypatch.syspath_prepend(tmp_path)
    grid = [cells.Square(1), cells.Square(2)]
    assert len(results(grid, Store(tmp_path / "s"), executor_for("processes", 2))) == 2


def test_workers_that_die_are_replaced_only_so_often(cells, tmp_path, monkeypatch):
    start, started = processes._start, []

    def start_and_kill(threads):
        process = start(threads)
        process.kill()
        started.append(process)
        return process

    monkeypatch.setattr(processes, "_start", start_and_kill)
    with pytest.raises(BadInput, match=f"ended by signal 9 .*for the {TRIES}th time"):
        results([cells.Square(1), cells.Square(2)], Store(tmp_path / "s"), executor_for("processes", 2))
    assert len(started) <= 2 + 2 * TRIES


def test_executors_are_chosen_by_name():
    assert executor_for("serial") == Serial()
    assert executor_for("processes", 3) == processes.Processes(3)
    with pytest.raises(BadValue, match="got 'slurm'"):
        executor_for("slurm")
    with pytest.raises(BadValue, match="workers must be at least 1"):
        executor_for("processes", 0)


def test_workers_are_as_many_as_are_useful(cells, monkeypatch):
    monkeypatch.setattr("gnomon.lab.executors.cores", lambda: 4)
    grid = [cells.Square(n) for n in range(6)]
    assert useful(None, grid) == 4
    assert useful(3, grid) == 3
    assert useful(99, grid) == 6
    assert useful(None, []) == 1


def test_cells_of_a_script_run_in_its_process(monkeypatch, cells):
    monkeypatch.setattr(cells.Square, "modules", ("__main__",))
    assert useful(2, [cells.Square(1), cells.Square(2)]) == 1


def test_a_module_that_workers_cannot_import_is_named(cells):
    data = cells.Square(1).to_dict() | {"modules": ["no_such_module_anywhere"]}
    with pytest.raises(BadValue, match=r"no_such_module_anywhere.*one worker"):
        from_dict(data)


@dataclass(frozen=True)
class Bare(Cell):
    """Nothing but a label."""

    @property
    def label(self) -> str:
        return "///"

    def run(self, folder: Path, tell):
        return {}


def test_every_label_makes_a_folder():
    assert Bare().folder_name == "cell"
