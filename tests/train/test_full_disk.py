"""A disk that is full, or may not be written: what had been saved is there, and the error says so."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from gnomon.checkpoints import load, save_model
from gnomon.cli.main import cli
from gnomon.errors import BadInput
from gnomon.models import DecoderOnly
from gnomon.train import read_metrics, read_state, resume, train
from gnomon.train.metrics import MetricsLog

pytestmark = [
    pytest.mark.usefixtures("no_pictures"),
    pytest.mark.skipif(sys.platform == "win32", reason="limits files as Unix does"),
]


def with_room_for(n_bytes: int, work: Callable[[], None]) -> str:
    """What a process that may write no file beyond so many bytes was told; "" where that was enough."""
    import resource

    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.close(read)
        try:
            torch.set_num_threads(1)  # the parent's other threads have not come along
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # an error instead, as of a full disk
            resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))
            work()
        except BaseException as error:
            os.write(write, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        told = file.read().decode()
    os.waitpid(child, 0)
    return told


def files_of(folder: Path) -> dict[str, bytes]:
    """All but the logs, which only grow."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.safetensors")}


@pytest.mark.parametrize("room", [0, 10_000])
def test_a_full_disk_loses_nothing_that_was_saved(text, build, config, tmp_path, room):
    first = config(steps=2, keep=2, keep_best=True, ema=0.9)
    train(build(), text.task(first), first, tmp_path / "run", quiet=True)
    before = files_of(tmp_path / "run")
    changes = {"steps": 4, "save_every": 1}
    told = with_room_for(room, lambda: resume(tmp_path / "run", text.task(first), changes=changes, quiet=True) and None)
    assert told.startswith("BadInput: cannot write")
    assert read_state(tmp_path / "run").step == 2
    assert files_of(tmp_path / "run") == before
    assert resume(tmp_path / "run", text.task(first), changes=changes, quiet=True).steps == 4


def test_a_log_on_a_full_disk_says_so_and_keeps_its_lines(tmp_path):
    def work():
        log = MetricsLog(tmp_path / "metrics.jsonl", until=0)
        try:
            for step in range(1, 100):
                log.write(step, loss=1.0)
        finally:
            log.close()

    told = with_room_for(200, work)
    assert told.startswith(f"BadInput: cannot write {tmp_path / 'metrics.jsonl'}: ")
    assert len(read_metrics(tmp_path / "metrics.jsonl")) >= 5


@pytest.mark.parametrize(
    "arguments", [["extend", "model", "--to", "64", "--method", "yarn"], ["retrofit", "model", "--position", "alibi"]]
)
def test_a_changed_model_that_finds_no_room_leaves_no_half_of_it(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    save_model(DecoderOnly(50, 32, 2, 2, position="rope", max_positions=16), "model")
    before = files_of(tmp_path / "model")

    def work():
        result = CliRunner().invoke(cli, [*arguments, "--documents", "0", "--output", "out"])
        assert result.exit_code == 3, result.output
        raise BadInput(result.stderr)

    assert "cannot write out: File too large; what it held is as it was" in with_room_for(5_000, work)
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())
    assert files_of(tmp_path / "model") == before
    result = CliRunner().invoke(cli, [*arguments, "--documents", "0", "--output", "out"])
    assert result.exit_code == 0, result.output
    load("out")


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_is_named_before_the_first_step(text, build, config, tmp_path):
    (tmp_path / "run").mkdir(mode=0o500)
    with pytest.raises(BadInput, match="cannot write .*Permission denied"):
        train(build(), text.task(config()), config(), tmp_path / "run", quiet=True)


def test_a_disk_that_may_only_be_read_is_named_before_the_first_step(text, build, config):
    with pytest.raises(BadInput, match="cannot write /proc/run"):
        train(build(), text.task(config()), config(), "/proc/run", quiet=True)
