"""One layer of attention under each encoding against none, forward and backward: processor time, and bytes at once.

python benchmarks/layers.py [LENGTH] [NAME...]     default: 4096, every encoding
"""

import sys
import time
from collections.abc import Callable

import torch
from bench import machine, race
from torch.profiler import ProfilerActivity, profile

import gnomon as gn
from gnomon.attention import watch

HEADS, WIDTH = 8, 64


def layer(name: str, length: int) -> Callable[[], object]:
    """A function that runs the layer forward, and backward where gradients are kept."""
    torch.manual_seed(0)
    sizes = {"d_model": HEADS * WIDTH, "d_head": WIDTH, "n_heads": HEADS, "causal": True, "max_positions": length}
    position, attention = gn.positions.get(name).build(**sizes), gn.MultiHeadAttention(HEADS * WIDTH, HEADS)
    x, at = torch.randn(1, length, HEADS * WIDTH, requires_grad=True), gn.Layout.dense(1, length)

    def run() -> None:
        y = attention(x, position, at=at)
        if torch.is_grad_enabled():
            y.backward(torch.ones_like(y))

    return run


def most_bytes(run: Callable[[], object]) -> int:
    """Most bytes that torch held at once for what was allocated meanwhile."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        run()
    held = most = 0
    events = (event for event in profiled.profiler.kineto_results.events() if event.name() == "[memory]")
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return most


if __name__ == "__main__":
    torch.set_num_threads(1)  # threads that wait for each other would count as work
    length, names = int((sys.argv[1:] or ["4096"])[0]), sys.argv[2:] or gn.positions.names()
    print(machine())
    for name in names:
        ways = {"none": layer("none", length), name: layer(name, length)}
        with torch.no_grad(), watch() as ran:
            race(f"{name}, forward, T = {length}", ways, rounds=3, warmup=1, clock=time.process_time)
        race(f"{name}, forward and backward", ways, rounds=3, warmup=1, clock=time.process_time)
        print(f"  kernel {ran[-1]}, {most_bytes(ways[name]) / 2**20:.0f} MiB at once")
