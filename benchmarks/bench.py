"""How every benchmark here measures: contestants take turns in one process, medians are compared, the machine is named.

One round runs each contestant once, in an order that rotates, so that a noisy moment hits all of them alike. What is
reported is the median over rounds of (time of a contestant / time of the first one in the same round), and the spread.
"""

import platform
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch

import gnomon


def machine() -> str:
    """One line: processor, cores, threads used, versions."""
    model = next(
        (line.split(":")[1].strip() for line in _cpuinfo() if line.startswith("model name")), platform.processor()
    )
    return (
        f"{model or platform.machine()}, threads {torch.get_num_threads()}; Python {platform.python_version()}, "
        f"torch {torch.__version__}, gnomon {gnomon.__version__}"
    )


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def race(
    title: str,
    contestants: Mapping[str, Callable[[], object]],
    rounds: int = 15,
    warmup: int = 2,
    clock: Callable[[], float] = time.perf_counter,
) -> None:
    """Time the contestants against the first of them and print a table. clock: time.process_time counts what this
    process computes, on a machine that others use too."""
    names = list(contestants)
    for _ in range(warmup):
        for run in contestants.values():
            run()
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            start = clock()
            contestants[name]()
            times[name].append(clock() - start)
    kind = ", processor time" if clock is time.process_time else ""
    print(f"\n{title}{kind}  ({rounds} interleaved rounds; ratio to {names[0]!r}: median, quartiles)")
    for name in names:
        ratios = sorted(t / base for t, base in zip(times[name], times[names[0]], strict=True))
        low, _, high = statistics.quantiles(ratios, n=4)
        ms = statistics.median(times[name]) * 1e3
        print(f"  {name:34s} {ms:10.2f} ms   x{statistics.median(ratios):.2f}  [{low:.2f}, {high:.2f}]")
