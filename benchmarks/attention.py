"""Biases of distance against plain causal attention, forward and backward, and one of them as a dense T x T bias.

python benchmarks/attention.py [--processor-time] [LENGTH...]     default: 1024 4096
"""

import sys
import time
from collections.abc import Callable

import torch
from bench import machine, race
from torch.nn import functional as F

import gnomon as gn
from gnomon.attention import choose
from gnomon.attention.dense import AttentionSettings
from gnomon.layout import Layout

HEADS, WIDTH = 8, 64


def distance_biases(at: Layout) -> dict[str, gn.PositionEncoding]:
    """Every encoding of the registry whose bias is read as one number per distance, built."""
    sizes = {"d_model": HEADS * WIDTH, "d_head": WIDTH, "n_heads": HEADS, "causal": True}
    built = {name: gn.positions.get(name).build(**sizes, max_positions=at.shape[1]) for name in gn.positions.names()}
    kernels = {name: choose(position, at, at, AttentionSettings(), "cpu") for name, position in built.items()}
    return {name: position for name, position in built.items() if kernels[name] == "toeplitz"}


def run(length: int, clock: Callable[[], float]) -> None:
    """8 heads of 64, forward only and forward with backward."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, HEADS, length, WIDTH, requires_grad=True) for _ in range(3))
    at, none = Layout.dense(1, length), gn.positions.get("none").build()
    biases = distance_biases(at)

    def dense_bias() -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=biases["alibi"].score_mask(at))

    ways = {
        "causal, no position": lambda: gn.attend(q, k, v, none, at, at),
        **{name: (lambda position=position: gn.attend(q, k, v, position, at, at)) for name, position in biases.items()},
        "alibi, dense T x T bias": dense_bias,
    }
    with torch.no_grad():
        race(f"Attention forward, T = {length}, 8 heads of 64", ways, rounds=9, clock=clock)
    grad = torch.randn(1, HEADS, length, WIDTH)
    race(
        f"Attention forward and backward, T = {length}",
        {name: (lambda f=f: f().backward(grad)) for name, f in ways.items()},
        rounds=5,
        clock=clock,
    )


if __name__ == "__main__":
    alone = "--processor-time" not in sys.argv
    torch.set_num_threads(2 if alone else 1)  # threads that wait for each other would count as work
    print(machine())
    lengths = [int(word) for word in sys.argv[1:] if word != "--processor-time"] or [1024, 4096]
    for length in lengths:
        run(length, time.perf_counter if alone else time.process_time)
