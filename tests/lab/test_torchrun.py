"""A model that several processes train together under torchrun is the one that a process trains alone."""

import sys
from dataclasses import replace

import pytest

from gnomon.lab.executors import Serial, run_cells
from gnomon.lab.prepare import prepare
from gnomon.lab.store import Store
from gnomon.lab.torchrun import command
from gnomon.lab.trial import TrialResult


def test_the_command_starts_a_process_for_each_gpu(tmp_path):
    words = command(4, tmp_path / "cell.json")
    assert words[0] == sys.executable
    assert "--nproc-per-node=4" in words
    assert words[-3:] == ["-m", "gnomon.lab.torchrun_worker", str(tmp_path / "cell.json")]


@pytest.mark.slow
def test_two_processes_train_the_model_that_one_trains(settings, corpus, tmp_path):
    """On processors, through gloo; GPUs take the same path with another backend."""

    def measured(gpus):
        lab = prepare(replace(settings, positions=("rope",), gpus=gpus), corpus, tmp_path / str(gpus), quiet=True)
        [done] = run_cells(lab.cells(), Store(lab.folder), Serial())
        assert (done.folder / "model.safetensors").exists()
        return TrialResult.from_result(done.result)

    one, two = measured(1), measured(2)
    assert [loss for _, loss in two.losses] == pytest.approx([loss for _, loss in one.losses], rel=1e-4)
    assert two.first == one.first
    for a, b in zip(one.measurements.nats, two.measurements.nats, strict=True):
        assert a == pytest.approx(b, rel=1e-3)
