"""Rotating queries and keys of 8 heads of 64 against copying them, and against other libraries."""

import time
from collections.abc import Callable

import torch
from bench import SMOKE, machine, race
from rotary_embedding_torch import RotaryEmbedding
from transformers.models.gpt_neox.modeling_gpt_neox import apply_rotary_pos_emb

import gnomon as gn

HEADS, WIDTH = 8, 64


def ways(length: int, grad: bool) -> dict[str, Callable[[], object]]:
    """Each gives both, turned; with `grad`, and the gradients of what went in."""
    q, k = (torch.randn(1, length, HEADS, WIDTH).transpose(1, 2).requires_grad_(grad) for _ in range(2))
    at, others = gn.Layout.dense(1, length), RotaryEmbedding(WIDTH, cache_if_possible=True)
    half, neighbours = (gn.positions.get("rope", pairing=kind).build(d_head=WIDTH) for kind in ("half", "interleaved"))
    tables = half.prepare(at)
    assert tables is not None
    cos, sin = (torch.cat([x[:, 0], x[:, 0]], -1) for x in tables)
    plain: dict[str, Callable[[], tuple[torch.Tensor, ...]]] = {
        "copy": lambda: (q.clone(), k.clone()),
        "gnomon, halves": lambda: (half.query(q, tables), half.key(k, tables)),
        "gnomon, neighbours": lambda: (neighbours.query(q, tables), neighbours.key(k, tables)),
        "transformers": lambda: apply_rotary_pos_emb(q, k, cos, sin),
        "rotary-embedding-torch": lambda: (others.rotate_queries_or_keys(q), others.rotate_queries_or_keys(k)),
    }
    if not grad:
        return {**plain}
    cotangent = torch.randn_like(q)

    def both(way: Callable[[], tuple[torch.Tensor, ...]]) -> Callable[[], object]:
        return lambda: torch.autograd.grad(way(), (q, k), (cotangent, cotangent))

    return {name: both(way) for name, way in plain.items()}


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(machine())
    for length in (16,) if SMOKE else (1024, 4096):
        with torch.no_grad():
            race(f"Rotation of {length} tokens, forward", ways(length, False), rounds=31, clock=time.process_time)
        race(
            f"Rotation of {length} tokens, forward and backward", ways(length, True), rounds=31, clock=time.process_time
        )
