"""The folder of a run, kept from other writers for as long as the run goes on."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gnomon.checkpoints.native import CONFIG, TOKENIZER, run_folder
from gnomon.checkpoints.staging import contents, has_interrupted_save, sweep
from gnomon.data import lock_folder
from gnomon.data.lock import check_name
from gnomon.errors import BadValue
from gnomon.train.state import BASE, TRAINING

# What a first save puts into a folder before the weights: without these, and with a draft, it was never whole.
OF_A_FIRST_SAVE = {CONFIG, TOKENIZER, "tokenizer_config.json", TRAINING, BASE}


@contextmanager
def new_folder(folder: str | Path) -> Iterator[Path]:
    """The folder of a new run, ours within the block; what a run that was killed before its first save left is removed.

    Raises BadValue where something is there that the run would replace, or a file, and BadInput where another process
    is at work there.
    """
    folder = check_name(Path(folder))
    if folder.exists() and not folder.is_dir():
        raise BadValue(f"{folder} already exists and is a file: choose another folder for the run")
    with lock_folder(folder):
        there = contents(folder)
        if there and not (has_interrupted_save(folder) and there <= OF_A_FIRST_SAVE):
            raise BadValue(f"{folder} already exists and is not empty: resume the run in it, or choose another folder")
        for name in there:
            path = folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        sweep(folder)
        yield folder


@contextmanager
def old_folder(folder: str | Path) -> Iterator[Path]:
    """The folder of a run that goes on, ours within the block; BadInput where there is none, or another process."""
    with lock_folder(run_folder(Path(folder))) as found:
        yield found


__all__ = ["new_folder", "old_folder"]
