"""How long an audit takes: every law about a tiny model and about one of 135 M parameters, and the slowest laws.

The large one has SmolLM2's sizes and random weights. Seconds on the wall depend on what else the machine does, those
of the processor do not.
"""

import time
from itertools import pairwise

import torch
from bench import machine
from loading import KIND, SIZES

import gnomon as gn

TINY = {"vocab_size": 32, "d_model": 16, "n_layers": 2, "n_heads": 2}


def timed(name: str, model: gn.DecoderOnly) -> None:
    """Audit the model and print what it took."""
    marks: list[tuple[str, float]] = []
    start, used = time.perf_counter(), time.process_time()
    report = gn.audit(model, progress=lambda done, total, law: marks.append((law, time.perf_counter())))
    wall, cpu = time.perf_counter() - start, time.process_time() - used
    laws = sorted(((after - before, law) for (law, before), (_, after) in pairwise(marks)), reverse=True)
    print(f"\n{name}: {len(report.findings)} laws in {wall:.1f} s ({cpu:.1f} s of the processor)")
    for seconds, law in laws[:3]:
        print(f"  {seconds:6.2f} s  {law}")


if __name__ == "__main__":
    torch.set_num_threads(1)  # as gnomon audit does
    print(machine())
    timed("2 layers of width 16", gn.DecoderOnly(**TINY))
    timed("135 M parameters", gn.DecoderOnly(**SIZES, **KIND))
