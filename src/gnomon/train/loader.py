"""Batches in order, made when they are asked for, or ahead by other processes.

A batch is a function of its step, so how many processes make them changes nothing, and a resumed run only asks for
another first step.
"""

import signal
import warnings
from collections.abc import Iterator

from torch.utils.data import DataLoader, Dataset

from gnomon.data.lock import let_go
from gnomon.errors import BadInput
from gnomon.train.task import Batch, Task

AHEAD = 2  # batches that each process has ready


class MakerEnded(BadInput):
    """A process that makes batches was killed."""


class _Steps(Dataset[Batch]):
    def __init__(self, task: Task) -> None:
        self.task = task

    def __getitem__(self, number: int) -> Batch:
        return self.task.batch(number)


class Loader:
    """The batches of a task up to step `last`, made by `workers` other processes; by this one where that is 0."""

    def __init__(self, task: Task, last: int, workers: int) -> None:
        self.task, self.last, self.workers = task, last, workers
        self._next = -1
        self._ahead: Iterator[Batch] = iter(())

    def batch(self, number: int) -> Batch:
        """The batch of step `number`. They are made ahead for who asks in order. MakerEnded where one was killed."""
        if self.workers == 0:
            return self.task.batch(number)
        if number != self._next:
            self._ahead = self._from(number)
        self._next = number + 1
        try:
            return next(self._ahead)
        except RuntimeError as error:
            if "worker" not in str(error):
                raise
            raise MakerEnded(f"a process that makes batches ended: {error}. Take fewer workers, or none") from error

    def _from(self, number: int) -> Iterator[Batch]:
        steps = range(number, max(self.last, number + 1))
        loader = DataLoader(
            _Steps(self.task),
            sampler=steps,
            batch_size=None,
            num_workers=self.workers,
            prefetch_factor=AHEAD,
            worker_init_fn=_begin,
        )
        with warnings.catch_warnings():
            # Python warns of forks beside threads: ours sleeps, and the child uses numpy alone.
            warnings.simplefilter("ignore", DeprecationWarning)
            return iter(loader)


def _begin(worker: int) -> None:
    """A worker ends with its parent, not by the Ctrl-C that asks the parent to save, and keeps no folder locked."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # how its parent ends it
    let_go()


__all__ = ["Loader", "MakerEnded"]
