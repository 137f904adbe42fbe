"""A beam search without a cache, as short as it can be: what beams with a cache are compared with.

the `width` continuations with the largest sum of log-probabilities go on, token by token; all have the same length
"""

from collections.abc import Callable, Sequence

import torch

from gnomon.shapes import Float, Int

#: texts (N, T) and which row of the batch each belongs to (N) -> logits (N, V) of what follows
Texts = Callable[[Int, Int], Float]


def best(following: Texts, ids: Int, width: int, new: int, never: Sequence[int] = ()) -> list[list[int]]:
    """The best `new` tokens after each row of ids (B, T), none of them in `never`."""
    return [_row(following, ids[b], b, width, new, never) for b in range(len(ids))]


def _row(following: Texts, start: Int, b: int, width: int, new: int, never: Sequence[int]) -> list[int]:
    texts, scores = start[None], torch.zeros(1, device=start.device)
    for _ in range(new):
        rows = torch.full((len(texts),), b, device=start.device)
        logits = following(texts, rows).float()
        logits[:, list(never)] = float("-inf")
        ranked = scores[:, None] + logits.log_softmax(-1)  # (N, V)
        scores, chosen = ranked.flatten().topk(min(width, int(ranked.isfinite().sum())))
        parent, token = chosen // logits.shape[1], chosen % logits.shape[1]
        texts = torch.cat([texts[parent], token[:, None]], 1)
    return [int(i) for i in texts[0, len(start) :]]


__all__ = ["Texts", "best"]
