"""Queries in stretches: the keys that each may see, and the gradient of their scores."""

import torch

from gnomon.attention.dense import AttentionSettings
from gnomon.shapes import Float

CACHED = 2**21  #: most numbers of a matrix that is passed over several times; 8 MiB of float32 stay near the processor
STRETCH = 512  #: queries that a fused kernel is given at once where they see different keys


class Seen:
    """Which keys a stretch of queries may see, told from lengths and settings."""

    def __init__(self, T: int, S: int, settings: AttentionSettings, same: bool) -> None:
        self.T, self.S, self.same = T, S, same
        self.causal, self.window = settings.causal, settings.window

    def keys(self, start: int, stop: int) -> slice:
        """Of queries start..stop-1; all, where it is not known that query i sits where key i does."""
        if not self.same:
            return slice(0, self.S)
        first = 0 if self.window is None else max(0, start - self.window + 1)
        last = stop if self.causal else self.S if self.window is None else min(self.S, stop + self.window - 1)
        return slice(first, last)

    def stretches(self, rows: int, always: bool = False) -> list[tuple[slice, slice]]:
        """Queries in stretches of so many, and the keys of each; in one where it sees all keys, if not always."""
        rows = rows if always or (self.same and (self.causal or self.window is not None)) else max(1, self.T)
        ends = [(start, min(start + rows, self.T)) for start in range(0, self.T, rows)]
        return [(slice(start, stop), self.keys(start, stop)) for start, stop in ends]


def weights_and_scores(
    q: Float, k: Float, v: Float, mask: Float, do: Float, scale: float, sees_itself: bool
) -> tuple[Float, Float]:
    """The weights (B, H, n, m), and the gradient of the scores that they come from."""
    s = torch.add(mask, q @ k.transpose(-1, -2), alpha=scale)
    if sees_itself:
        p = s.softmax(-1)
    else:  # a query that sees nothing has no weights
        blind = (s == -torch.inf).all(-1, keepdim=True)
        p = s.masked_fill(blind, 0.0).softmax(-1).masked_fill(blind, 0.0)
    return p, torch.ops.aten._softmax_backward_data(do @ v.transpose(-1, -2), p, -1, s.dtype)


__all__ = ["CACHED", "STRETCH", "Seen", "weights_and_scores"]
