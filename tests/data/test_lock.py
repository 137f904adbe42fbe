"""One writer at a time: who comes second is told who is first, and what a killed one left keeps nobody out."""

import json
import os
import platform
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gnomon.data import lock, lock_folder
from gnomon.data.lock import LOCK, SILENT
from gnomon.errors import BadInput, BadValue

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are made by forking")


@contextmanager
def another_process(folder: Path) -> Iterator[int]:
    """A process that holds the folder until the block ends, or it is killed."""
    ready, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        with lock_folder(folder):
            os.write(write_end, b"x")
            time.sleep(600)
        os._exit(0)
    os.read(ready, 1)
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def left_by(host: str, folder: Path, seconds_ago: float) -> Path:
    """The lock of a process on some host, last touched so long ago."""
    folder.mkdir(exist_ok=True)
    (folder / LOCK).write_text(json.dumps({"process": 7, "host": host, "since": "then"}))
    moment = time.time() - seconds_ago
    os.utime(folder / LOCK, (moment, moment))
    return folder


def test_a_second_process_is_refused_and_told_who_is_there(tmp_path: Path) -> None:
    with another_process(tmp_path / "run") as child:
        with pytest.raises(BadInput, match=f"process {child} on {platform.node()} has been writing .*run since"):
            lock_folder(tmp_path / "run").__enter__()
        assert json.loads((tmp_path / "run" / LOCK).read_text())["process"] == child  # it keeps what it has


def test_a_lock_whose_process_was_killed_is_taken_over(tmp_path: Path) -> None:
    with another_process(tmp_path / "run"):
        pass
    assert (tmp_path / "run" / LOCK).exists()
    with lock_folder(tmp_path / "run"):
        assert json.loads((tmp_path / "run" / LOCK).read_text())["process"] == os.getpid()
    assert list((tmp_path / "run").iterdir()) == []


def test_a_lock_of_another_host_holds_while_it_shows_life(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=f"process 7 on elsewhere .* since then.*{SILENT:.0f} seconds after"):
        lock_folder(left_by("elsewhere", tmp_path / "alive", SILENT / 2)).__enter__()
    with lock_folder(left_by("elsewhere", tmp_path / "dead", SILENT + 5)):
        pass


def test_where_files_cannot_be_locked_signs_of_life_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "hold", lambda file: None)
    with lock_folder(left_by(platform.node(), tmp_path / "dead", SILENT + 5)):
        held = dict(lock._held)
        lock._held.clear()  # as if it were another process's
        with pytest.raises(BadInput, match="process"):
            lock_folder(tmp_path / "dead").__enter__()
        lock._held.update(held)


def test_whoever_writes_shows_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touched = threading.Event()
    monkeypatch.setattr(lock, "BEAT", 0.001)
    monkeypatch.setattr(os, "utime", lambda path: touched.set())
    with lock_folder(tmp_path):
        assert touched.wait(30)


def test_another_thread_of_the_same_process_is_another_writer(tmp_path: Path) -> None:
    refused = []

    def work() -> None:
        try:
            lock_folder(tmp_path).__enter__()
        except BadInput as error:
            refused.append(str(error))

    with lock_folder(tmp_path):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert f"process {os.getpid()} on" in refused[0]


def test_who_holds_a_folder_may_lock_it_again_and_lets_go_once(tmp_path: Path) -> None:
    with lock_folder(tmp_path):
        with lock_folder(tmp_path / "." / ""):
            pass
        assert (tmp_path / LOCK).exists()
    assert not (tmp_path / LOCK).exists()


def test_folders_made_for_nothing_go_again_and_others_stay(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    with lock_folder(tmp_path / "old" / "new" / "newer"):
        pass
    assert list((tmp_path / "old").iterdir()) == []
    with lock_folder(tmp_path / "kept"):
        (tmp_path / "kept" / "file").touch()
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["file"]


@pytest.mark.parametrize("left", [b"", b"{", b"[1]", b"null", b'{"process": 1}', b"\xff" * 9999, b"[" * 100_000])
def test_a_lock_that_says_nothing_is_no_lock_once_it_is_free(tmp_path: Path, left: bytes) -> None:
    (tmp_path / LOCK).write_bytes(left)
    with lock_folder(tmp_path):
        assert json.loads((tmp_path / LOCK).read_text())["host"] == platform.node()


def test_a_name_that_is_not_utf_8_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    with pytest.raises(BadValue, match="is not UTF-8"):
        lock_folder(name).__enter__()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("file", "file/below", "x" * 300):
        with pytest.raises(BadInput, match="cannot write"):
            lock_folder(tmp_path / name).__enter__()


@pytest.mark.slow
def test_ten_processes_take_turns_and_never_overlap(tmp_path: Path) -> None:
    """Each takes the folder as often as it can; within it, it alone may hold a second file."""
    children = []
    for _ in range(10):
        child = os.fork()
        if child == 0:
            code = 0
            for _ in range(20):
                try:
                    with lock_folder(tmp_path / "run"):
                        os.close(os.open(tmp_path / "alone", os.O_CREAT | os.O_EXCL))
                        os.unlink(tmp_path / "alone")
                except BadInput:
                    continue
                except FileExistsError:
                    code = 1
            os._exit(code)
        children.append(child)
    assert {os.waitpid(child, 0)[1] for child in children} == {0}
