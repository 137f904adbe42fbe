"""A file is whole or absent."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gnomon.data import atomic, cache_folder
from gnomon.errors import BadInput


def test_a_finished_block_leaves_the_file_alone_in_its_folder(tmp_path: Path) -> None:
    with atomic(tmp_path / "new" / "file") as file:
        file.write(b"whole")
        assert not (tmp_path / "new" / "file").exists()
    assert [(path.name, path.read_bytes()) for path in (tmp_path / "new").iterdir()] == [("file", b"whole")]


@pytest.mark.parametrize("stop", [ValueError, KeyboardInterrupt])
def test_an_interrupted_block_leaves_what_was_there(tmp_path: Path, stop: type[BaseException]) -> None:
    (tmp_path / "file").write_bytes(b"old")

    def write() -> None:
        with atomic(tmp_path / "file") as file:
            file.write(b"half")
            raise stop

    with pytest.raises(stop):
        write()
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"old")]


@pytest.mark.skipif(sys.platform == "win32", reason="limits on file size are POSIX")
def test_a_full_disk_leaves_what_was_there_and_says_so(tmp_path: Path) -> None:
    """A limit on file size stops the write half-way with an OSError, as a full disk does."""
    (tmp_path / "file").write_bytes(b"old")
    code = (
        "import resource, sys; from gnomon.data import atomic\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "with atomic(sys.argv[1]) as file: file.write(bytes(1 << 20))"
    )
    run = subprocess.run([sys.executable, "-c", code, tmp_path / "file"], capture_output=True, text=True)
    assert f"BadInput: cannot write {tmp_path / 'file'}: File too large; nothing was changed there" in run.stderr
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"old")]


def aged(path: Path, seconds: float = 60) -> Path:
    moment = time.time() - seconds
    os.utime(path, (moment, moment))
    return path


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are made by forking")
def test_what_a_killed_process_left_goes_with_the_next_write(tmp_path: Path) -> None:
    (tmp_path / ".other.1.ab.tmp").touch()
    child = os.fork()
    if child == 0:
        with atomic(tmp_path / "file[1]") as file:
            file.write(b"half")
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    [left] = tmp_path.glob(".file*.tmp")
    aged(left)
    with atomic(tmp_path / "file[1]") as file:
        file.write(b"whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".other.1.ab.tmp", "file[1]"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="files are locked on POSIX")
def test_a_slow_writer_keeps_its_draft_from_the_next_one(tmp_path: Path) -> None:
    with atomic(tmp_path / "file") as slow:
        slow.write(b"slow")
        slow.flush()
        aged(next(tmp_path.glob(".file.*.tmp")))
        with atomic(tmp_path / "file") as fast:
            fast.write(b"fast")
        assert (tmp_path / "file").read_bytes() == b"fast"
    assert (tmp_path / "file").read_bytes() == b"slow"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes by name")
def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with atomic(pipe) as file:
        file.write(b"whole")
    assert pipe.is_fifo()
    assert os.read(reader, 10) == b"whole"
    os.close(reader)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(BadInput, match=rf"{tmp_path}/file/below: .* \({tmp_path}/file\)"),
        atomic(tmp_path / "file/below"),
    ):
        pass


def test_the_mode_of_the_file_is_the_usual_one(tmp_path: Path) -> None:
    """Not the 0600 of temporary files: others in the group read runs and caches."""
    (tmp_path / "usual").touch()
    with atomic(tmp_path / "file"):
        pass
    assert os.stat(tmp_path / "file").st_mode == os.stat(tmp_path / "usual").st_mode


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNOMON_CACHE", "/somewhere")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_folder() == Path("/somewhere")
    monkeypatch.delenv("GNOMON_CACHE")
    assert cache_folder() == Path("/xdg/gnomon")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "gnomon"
