"""ALiBi through the distance vector, and as a dense bias, against plain causal attention."""

import torch
from bench import machine, race
from torch.nn import functional as F

import gnomon as gn
from gnomon.layout import Layout


def run(length: int) -> None:
    """8 heads of 64, forward only and forward with backward."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 8, length, 64, requires_grad=True) for _ in range(3))
    at, none = Layout.dense(1, length), gn.positions.get("none").build()
    alibi = gn.positions.get("alibi").build(n_heads=8)

    def dense_bias() -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=alibi.score_mask(at))

    ways = {
        "causal, no position": lambda: gn.attend(q, k, v, none, at, at),
        "alibi, distance vector": lambda: gn.attend(q, k, v, alibi, at, at),
        "alibi, dense T x T bias": dense_bias,
    }
    with torch.no_grad():
        race(f"Attention forward, T = {length}, 8 heads of 64", ways, rounds=9)
    grad = torch.randn(1, 8, length, 64)
    race(
        f"Attention forward and backward, T = {length}",
        {name: (lambda f=f: f().backward(grad)) for name, f in ways.items()},
        rounds=5,
    )


if __name__ == "__main__":
    torch.set_num_threads(2)
    print(machine())
    for length in (1024, 4096):
        run(length)
