"""Files that are either whole or absent, and the folder that holds what can be made again.

A reader never meets half a file: the bytes go into a temporary file beside the target, which takes the target's
place in one step (``os.replace``) after everything is on the disk. What a killed process left of one is removed by the
next write of the same target.
"""

import glob
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from gnomon.data.lock import hold
from gnomon.errors import BadInput

FRESH = 5  # seconds in which a draft may not be locked yet by the process that has just made it
DAY = 86_400  # seconds after which one is left behind where files cannot be locked


@contextmanager
def atomic(path: str | Path) -> Iterator[BinaryIO]:
    """Open ``path`` for binary writing such that it appears whole at the end of the block or stays as it was.

    Missing parent folders are made. A device or a pipe, such as /dev/null, is written to and stays what it is.
    Raises BadInput where the disk is full or the folder cannot be written.

        with atomic("run/metrics.json") as file:
            file.write(b"whole")
    """
    path = Path(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file() and not path.is_dir():
            with open(path, "wb") as device:
                yield device
            return
        sweep(path.parent, f".{glob.escape(path.name)}.*.tmp")
        with open(draft, "xb") as file:
            hold(file.fileno())
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except OSError as error:
        culprit = f" ({error.filename})" if error.filename and error.filename != str(draft) else ""
        raise BadInput(f"cannot write {path}: {error.strerror or error}{culprit}; nothing was changed there") from error
    finally:
        with suppress(OSError):  # moved into place, or never made
            draft.unlink()


def sweep(folder: Path, pattern: str = ".*.tmp", fresh: float = FRESH) -> None:
    """Remove the drafts of files that killed processes left in `folder`, but none younger than `fresh` seconds."""
    for draft in folder.glob(pattern):
        with suppress(OSError):  # another process may sweep too
            if _is_abandoned(draft, fresh):
                draft.unlink()


def _is_abandoned(draft: Path, fresh: float) -> bool:
    """Whether nobody writes this file any more: its writer holds a lock on it, which ends with the process."""
    age = time.time() - draft.stat().st_mtime
    if age < fresh or age > DAY:
        return age > DAY
    file = os.open(draft, os.O_RDWR)
    try:
        return hold(file) is True
    finally:
        os.close(file)


def cache_folder() -> Path:
    """Folder for what can be made again: ``$GNOMON_CACHE``, else ``gnomon`` in the user's XDG cache folder."""
    if chosen := os.environ.get("GNOMON_CACHE"):
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "gnomon"
