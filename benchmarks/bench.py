"""How every benchmark here measures: contestants take turns in one process, medians are compared, the machine is named.

One round runs each contestant once, in an order that rotates, so that a noisy moment hits all of them alike. What is
reported is the median over rounds of (time of a contestant / time of the first one in the same round), and the spread.
Where a race knows its limit, the least time that this machine needs for the work (`machine.py`), it tells each
contestant's share of it too.
"""

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch

import gnomon

SMOKE = bool(os.environ.get("GNOMON_BENCH_SMOKE"))  #: whether everything is to run, and nothing to be measured
RECORDS = os.environ.get("GNOMON_BENCH_RECORDS")  #: a file that gets a line of JSON for each result


def record(result: object) -> None:
    """Add a result to the file of this run, if there is one."""
    if RECORDS:
        with open(RECORDS, "a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")


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
    limit: float | Mapping[str, float] | None = None,
) -> None:
    """Time the contestants against the first of them and print a table. clock: time.process_time counts what this
    process computes, on a machine that others use too. limit: seconds that the work needs at least, or that of each
    contestant where they do not do the same."""
    names = list(contestants)
    rounds, warmup = (2, 0) if SMOKE else (rounds, warmup)
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
        median, ratio = statistics.median(times[name]), statistics.median(ratios)
        least = limit.get(name) if isinstance(limit, Mapping) else limit
        share = None if least is None else least / median
        tail = "" if share is None else f"  {share:4.0%} of the limit"
        print(f"  {name:34s} {median * 1e3:10.2f} ms   x{ratio:.2f}  [{low:.2f}, {high:.2f}]{tail}")
        record(
            {
                "work": title,
                "peer": names[0],
                "contestant": name,
                "seconds": median,
                "ratio": ratio,
                "quartiles": [low, high],
                "share_of_limit": share,
            }
        )
