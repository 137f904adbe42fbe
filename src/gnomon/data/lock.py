"""A folder that one process writes at a time.

    with locked("runs/mine"):
        ...

The file `.lock` in it says who writes: the process and its host. The operating system holds a lock on that file for as
long as the process lives and drops it however the process ends, so a file that can be locked was left by one that was
killed. Not every network disk passes such locks on to other hosts. There the age of the file decides: whoever writes
touches it every BEAT seconds, and after SILENT seconds without a sign of life it counts as left behind.
"""

import json
import os
import platform
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from gnomon.errors import BadInput, BadValue

if sys.platform != "win32":
    import fcntl

LOCK = ".lock"
BEAT, SILENT = 20.0, 120.0  # seconds

_held: dict[tuple[int, int, str], int] = {}  # process, thread, folder: the open lock file


@contextmanager
def lock_folder(folder: str | Path) -> Iterator[Path]:
    """Keep other writers out of `folder` within the block; missing folders are made, and go again if they stay empty.

    The thread that holds a folder may lock it again. Raises BadInput where another one writes there, naming it, or
    where nothing can be written, and BadValue for a name that no other program could open.
    """
    folder = check_name(Path(folder))
    key = (os.getpid(), threading.get_ident(), os.path.realpath(folder))
    if key in _held:
        yield folder
        return
    try:
        made = [path for path in (folder, *folder.parents) if not path.exists()]
        file = _take(folder)
    except OSError as error:
        raise BadInput(f"cannot write {folder}: {error.strerror or error}; nothing was changed there") from error
    ended = threading.Event()
    threading.Thread(target=_keep_alive, args=(folder / LOCK, ended), daemon=True).start()
    _held[key] = file
    try:
        yield folder
    finally:
        del _held[key]
        ended.set()
        _release(folder / LOCK, file)
        for path in made:
            with suppress(OSError):  # not empty, as it should be
                path.rmdir()


def check_name(folder: Path) -> Path:
    """The folder; BadValue for a name that is not UTF-8, which the readers of safetensors and of tokenizers refuse."""
    try:
        str(folder).encode()
    except UnicodeEncodeError as error:
        raise BadValue(f"the name {str(folder)!r} is not UTF-8, so not every program can open it: rename it") from error
    return folder


def hold(file: int) -> bool | None:
    """Lock an open file until it is closed: False where another process has it, None where files cannot be locked."""
    if sys.platform == "win32":
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def let_go() -> None:
    """In a process that was forked: close the lock files of its parent, which alone shall keep them locked."""
    for key in [key for key in _held if key[0] != os.getpid()]:
        os.close(_held.pop(key))


def _take(folder: Path) -> int:
    """The lock file, open and ours."""
    path = folder / LOCK
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            mine = hold(file)
            if mine is not False and not _is_held(file, path):
                os.close(file)  # its holder removed it between our two steps: there is another one now
                continue
            holder = _read(file)
            if mine is False or (holder and _may_live(holder, mine, path)):
                raise _in_use(folder, holder)
            _write(file)
        except BaseException:
            os.close(file)
            raise
        return file


def _is_held(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False


def _may_live(holder: dict[str, str], mine: bool | None, path: Path) -> bool:
    """Whether the holder of a lock that we could take may still be there: on a host whose locks do not reach us."""
    if mine and holder["host"] == platform.node():
        return False
    with tempfile.TemporaryFile(dir=path.parent) as probe:  # the disk's own clock
        return os.fstat(probe.fileno()).st_mtime - path.stat().st_mtime < SILENT


def _read(file: int) -> dict[str, str]:
    """Who has the lock; nothing where it does not say."""
    os.lseek(file, 0, os.SEEK_SET)
    try:
        found = json.loads(os.read(file, 4096))
        return {key: str(found[key]) for key in ("process", "host", "since")}
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}


def _write(file: int) -> None:
    about = {"process": os.getpid(), "host": platform.node(), "since": f"{datetime.now():%Y-%m-%d %H:%M}"}
    os.lseek(file, 0, os.SEEK_SET)
    os.ftruncate(file, 0)
    os.write(file, json.dumps(about).encode())


def _in_use(folder: Path, holder: dict[str, str]) -> BadInput:
    if not holder:
        return BadInput(f"another process is writing {folder}: wait until it ends, or choose another folder")
    elsewhere = holder["host"] != platform.node()
    gone = f" (if it was killed, the folder is free {SILENT:.0f} seconds after its end)" if elsewhere else ""
    return BadInput(
        f"process {holder['process']} on {holder['host']} has been writing {folder} since {holder['since']}: wait "
        f"until it ends, stop it, or choose another folder{gone}"
    )


def _keep_alive(path: Path, ended: threading.Event) -> None:
    while not ended.wait(BEAT):
        with suppress(OSError):
            os.utime(path)


def _release(path: Path, file: int) -> None:
    with suppress(OSError):
        path.unlink()  # while it is still ours, so that nobody removes the next one's
    os.close(file)
    if sys.platform == "win32":  # an open file cannot be removed there
        path.unlink(missing_ok=True)


__all__ = ["BEAT", "LOCK", "SILENT", "check_name", "hold", "let_go", "lock_folder"]
