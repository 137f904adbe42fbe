"""A grid on a Ray cluster: the same results, and none lost with a worker. Skipped where Ray is not installed."""

import os
import sys
from pathlib import Path

import pytest

from gnomon.errors import BadInput, BadValue
from gnomon.lab.executor_choice import executor_for
from gnomon.lab.executors import Serial, run_cells
from gnomon.lab.ray_cluster import RayCluster
from gnomon.lab.store import Store

CELLS = '''
import os, signal, time
from dataclasses import dataclass
from pathlib import Path
from gnomon.errors import BadValue
from gnomon.lab.cell import Cell

@dataclass(frozen=True)
class Cube(Cell):
    """The cube of n and what a file of the cache says; the first to see no file `deadly` kills its worker."""
    n: int
    deadly: str = ""
    shared: str = ""
    wrong: bool = False

    @property
    def label(self):
        return f"cube {self.n}"

    def needs(self):
        return [Path(os.environ["GNOMON_CACHE"]) / self.shared] if self.shared else []

    def run(self, folder, tell):
        tell(0.5, "half")
        if self.wrong:
            raise BadValue("n is wrong")
        if self.deadly and not Path(self.deadly).exists():
            Path(self.deadly).write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.2)
        (folder / "below").mkdir()
        (folder / "below" / "n.txt").write_text(str(self.n))
        said = self.needs()[0].read_text() if self.shared else ""
        return {"cube": self.n**3, "said": said}
'''


@pytest.fixture
def cells(tmp_path, monkeypatch):
    monkeypatch.setenv("GNOMON_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache" / "tokens").mkdir(parents=True)
    (tmp_path / "cache" / "tokens" / "x.tokens").write_text("told")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "cells_of_a_cluster.py").write_text(CELLS)
    monkeypatch.syspath_prepend(str(tmp_path / "here"))
    import cells_of_a_cluster

    yield cells_of_a_cluster
    del sys.modules["cells_of_a_cluster"]


@pytest.fixture(scope="module")
def cluster():
    """Two workers on this machine."""
    ray = pytest.importorskip("ray", reason="the extra `ray` is not installed: pip install 'gnomon[ray]'")
    environment = {"PYTHONPATH": os.environ.get("PYTHONPATH", ""), "OMP_NUM_THREADS": "1"}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": environment})
    yield ray
    ray.shutdown()


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing(cluster, cells, tmp_path):
    """Six cells on two workers, one of which is killed at the third; files and modules travel with them."""
    grid = [cells.Cube(n, str(tmp_path / "died") if n == 2 else "", "tokens/x.tokens") for n in range(6)]
    heard = []

    class Ear:
        def begin(self, cells):
            heard.append(("begin", len(cells)))

        def take(self, cell, event):
            heard.append((cell.n, event["event"]))

    done = list(run_cells(grid, Store(tmp_path / "s"), executor_for("ray"), Ear()))
    assert sorted((d.cell.n, d.result["cube"], d.result["said"]) for d in done) == [(n, n**3, "told") for n in range(6)]
    assert (tmp_path / "died").exists()
    assert {n for n, event in heard if event == "done"} == set(range(6))
    assert all((d.folder / "below" / "n.txt").read_text() == str(d.cell.n) for d in done)
    again = list(run_cells(grid, Store(tmp_path / "s"), Serial()))
    assert all(d.reused for d in again)


@pytest.mark.slow
def test_an_error_of_a_cell_comes_up_in_its_kind(cluster, cells, tmp_path):
    with pytest.raises(BadValue, match="n is wrong"):
        list(run_cells([cells.Cube(1, wrong=True)], Store(tmp_path / "s"), RayCluster()))


def test_without_ray_the_error_says_what_to_install(cells, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(BadInput, match=r"pip install 'gnomon\[ray\]'"):
        list(run_cells([cells.Cube(1)], Store(tmp_path / "s"), RayCluster()))


def test_the_address_of_a_cluster_is_its_flag():
    assert executor_for("ray://head:10001", 3) == RayCluster("ray://head:10001", 3)
    assert executor_for("ray") == RayCluster(None, None)


def test_an_empty_grid_asks_nobody(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert list(run_cells([], Store(Path(tmp_path)), RayCluster())) == []
