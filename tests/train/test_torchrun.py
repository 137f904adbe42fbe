"""`torchrun -m gnomon train`: a process that is killed, torchrun's own restart, and the run of one process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gnomon.checkpoints.native import read_tensors
from gnomon.train import read_metrics, read_state

OPTIONS = [
    "text.txt", "--tokenizer", "bytes", "--batch-size", "4", "--length", "8", "--steps", "8", "--dtype", "float64",
    "--quiet",
    *(f"--set=model.{name}" for name in ("d_model=16", "n_layers=1", "n_heads=2", "dropout=0")),
    *(f"--set=train.{name}" for name in ("eval_windows=4", "log_every=1", "save_every=2", "sample_every=none")),
]  # fmt: skip
KILLS = """
import os, signal
from gnomon.train.run import Run

original = Run.step

def step(self, number, *stop):
    if number == 5 and self.ranks.rank == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        os.kill(os.getpid(), signal.SIGKILL)
    return original(self, number, *stop)

Run.step = step
"""


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GNOMON_CACHE": str(folder / "cache")}
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs gloo")
def test_torchrun_starts_a_run_again_from_its_last_save_when_a_process_is_killed(tmp_path):
    (tmp_path / "text.txt").write_text("".join(f"def f{i}(x):\n    return x + {i * i}\n" for i in range(60)))
    (tmp_path / "kills.py").write_text(KILLS)
    alone = run(tmp_path, "gnomon", "train", *OPTIONS, "--output", "alone")
    assert alone.returncode == 0, alone.stderr
    launch = ("torch.distributed.run", "--nproc-per-node=2", "--max-restarts=1", "-m", "gnomon", "train", *OPTIONS)
    several = run(tmp_path, *launch, "--output", "run", "--import", "kills.py")
    assert several.returncode == 0, several.stderr
    assert "another process of this run has ended. run holds the state of its last save" in several.stderr
    assert several.stdout.count("run: step 8") == 1  # one process speaks
    assert read_state(tmp_path / "run").step == 8
    ours, theirs = (read_tensors(tmp_path / name / "model.safetensors")[0] for name in ("alone", "run"))
    assert max(float((ours[name] - theirs[name]).abs().max()) for name in ours) < 1e-6
    logged = [line["step"] for line in read_metrics(tmp_path / "run" / "metrics.jsonl") if "loss" in line]
    assert logged == list(range(1, 9))
