"""What this machine can do at most: the limits that every other measurement is a share of.

python benchmarks/machine.py

Each number is the best of several tries of the fastest way at hand: bytes read and copied per second, multiplications
and additions of large matrices, and what products of one row read of their weights.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache

import torch
from bench import SMOKE, machine, record
from torch.nn import functional as F

import gnomon as gn
from gnomon.linear import Linear, many_rows
from gnomon.stored import pack

SIZE = 2**20 if SMOKE else 2**26  # numbers that no cache holds
SIDE = 256 if SMOKE else 1536
TRIES = 2 if SMOKE else 7


@dataclass(frozen=True)
class Limits:
    """Bytes and operations a second, on all threads."""

    read: float
    copy: float
    float32: float
    bfloat16: float
    int8: float
    one_row_torch: float  #: bytes of float32 weights a second
    one_row_gnomon: float
    one_row_int8: float

    def words(self) -> list[tuple[str, str]]:
        """What each number is, and the number with its unit."""
        per_row = {"one_row_torch": "one row, torch", "one_row_gnomon": "one row, gnomon", "one_row_int8": "its int8"}
        gb = {"read": "memory read", "copy": "memory copied, both ways", **per_row}
        flops = {"float32": "float32 matrices", "bfloat16": "bfloat16 matrices", "int8": "int8 matrices"}
        known = asdict(self)
        return [(words, f"{known[k] / 1e9:8.1f} GB/s") for k, words in gb.items()] + [
            (words, f"{known[k] / 1e9:8.1f} GFLOP/s" if known[k] else "     n/a") for k, words in flops.items()
        ]


def least(run: Callable[[], object]) -> float:
    """Seconds of the fastest try."""
    times = []
    for _ in range(TRIES + 1):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times[1:])


@cache
@torch.no_grad()
def limits() -> Limits:
    """Measured once in a process."""
    x, y = torch.ones(SIZE), torch.empty(SIZE)
    read, copied = 4 * SIZE / least(x.sum), 8 * SIZE / least(lambda: y.copy_(x))
    a, b, flops = torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE), 2 * SIDE**3
    narrow = a.bfloat16(), b.bfloat16()
    small = a.to(torch.int8), b.to(torch.int8)
    matrices = [Linear(2048, 2048, bias=False) for _ in range(2 if SMOKE else 16)]  # 16 MiB each
    row, weight = torch.randn(1, 2048), 4 * 2048**2 * len(matrices)
    blocks = [pack(m.weight, "int8") for m in matrices]

    def stored() -> None:
        for block in blocks:
            gn.native.product(row, block, None, 2048, "int8")

    return Limits(
        read,
        copied,
        flops / min(least(lambda: F.linear(a, b)), least(lambda: many_rows(a, b))),
        flops / least(lambda: F.linear(*narrow)),
        flops / least(lambda: torch._int_mm(*small)),
        weight / least(lambda: [F.linear(row, m.weight) for m in matrices]),
        weight / least(lambda: [m(row) for m in matrices]),
        sum(block.nbytes for block in blocks) / least(stored) if gn.native.library() else 0.0,
    )


if __name__ == "__main__":
    print(f"{machine()}\n")
    for what, number in limits().words():
        print(f"  {what:34s} {number}")
    record({"machine": machine(), "limits": asdict(limits())})
