"""Laws of the cache: going step by step is never another computation."""

import torch

from gnomon.audit.outside.rule import Evidence, rule
from gnomon.audit.outside.target import Target
from gnomon.shapes import Float, Int


def fed(t: Target, ids: Int, chunks: list[int]) -> Float:
    """Logits (B, T, V) of ids read in chunks through a cache."""
    state, out, start = None, [], 0
    for n in chunks:
        logits, state = t.step(state, ids[:, start : start + n])
        out.append(logits)
        start += n
    return torch.cat(out, 1)


@rule(
    "cached = full",
    source="a cache that numbers new tokens from 0, or by its own length in slots",
    hint="a step must stand at the position after all tokens read before it, and see all of them",
)
def cached_is_full(t: Target, n: int) -> Evidence:
    """Reading token by token through the cache gives the logits of one read at once."""
    t.need("cache")
    t.must_be_causal()
    ids = t.ids(2, n)
    want = t.logits(ids)
    forgotten = torch.cat([t.logits(ids[:, i : i + 1]) for i in range(n)], 1)
    return Evidence(fed(t, ids, [1] * n), want, forgotten if n > 1 else None, ids)


__all__ = ["cached_is_full", "fed"]
