"""Ranks: the processes that train one model together, each with its share of the rows of every batch.

    torchrun --nproc-per-node=2 -m gnomon train my_texts/ --output runs/mine

Every process makes the whole batch, which costs next to nothing, and computes its rows of it, so that the weight of a
target does not depend on how many processes there are: N processes take the same step as one, but for rounding.
Alone, everything here does nothing.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import distributed as dist
from torch import nn

from gnomon.errors import BadInput, BadValue
from gnomon.train.loss import Loss
from gnomon.train.task import Batch

T = TypeVar("T")
PATIENCE = timedelta(minutes=30)  # for another process, which may be saving or reading its data
SIGNS = ("gloo", "NCCL", "Connection closed", "Connection reset", "Broken pipe", "Socket", "TCPStore")


class Lost(BadInput):
    """Another process of the run has ended, so this one cannot go on."""


@dataclass(frozen=True)
class Ranks:
    """This process among `size`; `rank` counts from 0."""

    rank: int = 0
    size: int = 1

    @classmethod
    def here(cls) -> "Ranks":
        """What torch.distributed says; one process where it was not started."""
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size())
        return cls()

    @property
    def first(self) -> bool:
        """Whether this is the process that writes and speaks for all."""
        return self.rank == 0

    def share(self, batch: Batch, parts: int = 1) -> list[Batch]:
        """This process's rows of a batch, in `parts` pieces; all processes have as many."""
        pieces = list(batch.pieces(self.size * parts))
        if self.size > 1 and len(pieces) < self.size * parts:
            raise BadValue(
                f"a batch of {len(pieces)} rows cannot be shared by {self.size} processes of {parts} pieces each: "
                f"choose a batch_size of at least {self.size * parts}"
            )
        return pieces[self.rank :: self.size]

    def total(self, loss: Loss) -> Loss:
        """The sum of the losses of all processes."""
        if self.size == 1:
            return loss
        both = torch.stack([loss.total.double(), loss.count.double()])
        dist.all_reduce(both)
        return Loss(both[0].to(loss.total), both[1].to(loss.count))

    def any(self, *flags: bool) -> tuple[bool, ...]:
        """Of each flag, whether some process has it set; all processes get the same answer."""
        if self.size == 1:
            return flags
        device = "cpu" if dist.get_backend() == "gloo" else torch.cuda.current_device()
        votes = torch.tensor(flags, dtype=torch.int32, device=device)
        dist.all_reduce(votes, dist.ReduceOp.MAX)
        return tuple(map(bool, votes.tolist()))

    def from_first(self, value: T) -> T:
        """What the first process has."""
        box = [value]
        if self.size > 1:
            dist.broadcast_object_list(box, src=0)
        return box[0]

    def wait(self) -> None:
        """Until all processes are here."""
        if self.size > 1:
            self.any(True)

    @contextmanager
    def first_alone(self) -> Iterator[None]:
        """The first process runs the block before the others do: they find in the cache what it made."""
        if not self.first:
            self.wait()
        yield
        if self.first:
            self.wait()

    @contextmanager
    def synced(self, model: nn.Module, last: bool) -> Iterator[None]:
        """Within the block a backward pass adds to the gradients; with the last piece of a batch they are exchanged."""
        if isinstance(model, nn.parallel.DistributedDataParallel) and not last:
            with model.no_sync():
                yield
        else:
            yield

    @contextmanager
    def together(self, told: str) -> Iterator[None]:
        """Within the block the end of another process becomes an error that says so, and what `told` adds."""
        try:
            yield
        except RuntimeError as error:
            if self.size == 1 or not any(sign in str(error) for sign in SIGNS):
                raise
            raise Lost(f"another process of this run has ended. {told}") from error


ALONE = Ranks()


def launched() -> bool:
    """Whether torchrun started this process."""
    return dist.is_available() and dist.is_torchelastic_launched()


def restarted() -> bool:
    """Whether torchrun started this process again, after one of the run had ended."""
    return launched() and int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0


@contextmanager
def process_group(device: torch.device) -> Iterator[torch.device]:
    """Within the block the processes that torchrun started know each other; yields the device of this one."""
    if not launched():
        yield device
        return
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    c10d: Any = dist  # which does not list what it has
    store, rank, size = next(iter(c10d.rendezvous("env://", timeout=PATIENCE)))
    if os.environ.get("LOCAL_WORLD_SIZE") == str(size):
        # On one host torchrun keeps its store when it starts processes again, with the addresses of those that ended.
        store = c10d.PrefixStore(f"attempt {os.environ['TORCHELASTIC_RESTART_COUNT']}", store)
    dist.init_process_group(
        "nccl" if device.type == "cuda" else "gloo", timeout=PATIENCE, store=store, rank=rank, world_size=size
    )
    try:
        yield device
    finally:
        dist.destroy_process_group()


__all__ = ["ALONE", "Lost", "Ranks", "launched", "process_group", "restarted"]
