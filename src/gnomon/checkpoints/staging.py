"""Several files that take their places in a folder together, the weights last, and what a kill leaves of that."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gnomon.data import files as single
from gnomon.data import lock_folder
from gnomon.data.lock import LOCK
from gnomon.errors import BadInput, BadValue

WEIGHTS = "model.safetensors"
DRAFT = ".draft-"


def check_free(output: str | Path) -> Path:
    """The folder or file that is to be written; BadValue where there is a file, or something in the folder."""
    output = Path(output)
    if output.is_dir() and any(output.iterdir()):
        raise BadValue(f"the folder {output} is not empty: choose another one to write into")
    if output.exists() and not output.is_dir():
        raise BadValue(f"there is a file {output} already: choose another name")
    return output


@contextmanager
def draft(folder: str | Path) -> Iterator[Path]:
    """A new folder inside `folder`; at the end of the block its files take their places there, the weights last.

    Until then nothing of what `folder` holds is touched: not by an error in the block, a full disk or a kill. Other
    writers are kept out meanwhile, and what killed ones left is removed; BadInput where one is at work.
    """
    with lock_folder(folder) as folder:
        sweep(folder)
        new, moved = folder / f"{DRAFT}{os.getpid()}-{secrets.token_hex(4)}", 0
        try:
            new.mkdir()
            yield new
            files = [path for path in new.rglob("*") if path.is_file()]
            for path in files:
                _reach_the_disk(path)
            for path in sorted(files, key=lambda path: path == new / WEIGHTS):
                target = folder / path.relative_to(new)
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(path, target)
                moved += 1
        except OSError as error:
            left = "some of its files are new, some are old: save again" if moved else "what it held is as it was"
            raise BadInput(f"cannot write {folder}: {error.strerror or error}; {left}") from error
        finally:
            shutil.rmtree(new, ignore_errors=True)


def sweep(folder: Path) -> None:
    """Remove what killed processes left in a folder that is locked: drafts of saves and of single files."""
    for left in folder.glob(f"{DRAFT}*"):
        shutil.rmtree(left, ignore_errors=True)
    single.sweep(folder, fresh=0)


def contents(folder: Path) -> set[str]:
    """Names of what is in a folder, but for the files of a lock and of drafts."""
    passing = {LOCK, *(path.name for pattern in (f"{DRAFT}*", ".*.tmp") for path in folder.glob(pattern))}
    return {path.name for path in folder.iterdir()} - passing


def has_interrupted_save(folder: Path) -> bool:
    """Whether a kill ended the first save of a model in this folder: its weights, which go last, are in a draft."""
    return not (folder / WEIGHTS).exists() and any(folder.glob(f"{DRAFT}*"))


def _reach_the_disk(path: Path) -> None:
    with open(path, "r+b") as file:
        os.fsync(file.fileno())


__all__ = ["WEIGHTS", "check_free", "contents", "draft", "has_interrupted_save", "sweep"]
