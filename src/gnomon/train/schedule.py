"""The learning rate as a pure function of the step: linear warm-up, then a cosine down to a floor.

Loshchilov and Hutter 2017, arXiv:1608.03983, equation 5, without restarts:

    lr(s) = peak (s + 1) / warmup                                             s < warmup
    lr(s) = floor + (peak - floor) (1 + cos(pi (s - warmup) / (steps - warmup))) / 2
"""

import math


def warmup_cosine(step: int, peak: float, warmup: int, steps: int, floor: float = 0.0) -> float:
    """The rate for optimizer step `step` (0-based) of `steps`."""
    if step < warmup:
        return peak * (step + 1) / warmup
    part = min(1.0, (step - warmup) / max(1, steps - warmup))
    return floor + (peak - floor) * (1 + math.cos(math.pi * part)) / 2


__all__ = ["warmup_cosine"]
