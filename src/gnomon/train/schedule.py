"""The learning rate as a pure function of the step: linear warm-up to a peak, then a fall to a floor.

lr(s) = peak (s + 1) / warmup                                             s < warmup
lr(s) = floor + (peak - floor) f(p),    p = (s - warmup) / (steps - warmup)

cosine   f(p) = (1 + cos(pi p)) / 2                      Loshchilov and Hutter 2017, arXiv:1608.03983, equation 5
linear   f(p) = 1 - p
wsd      f(p) = 1 up to p = 1 - decay, then linear to 0  warm-up, stable, decay: Hu et al. 2024, arXiv:2404.06395
"""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

from gnomon.kinds import Setting

MOST = 2**40  # of anything that is counted
Name = Literal["cosine", "linear", "wsd"]


@dataclass(frozen=True, kw_only=True)
class ScheduleSettings:
    """Schedule of the learning rate"""

    steps: Annotated[int, Setting("optimizer steps in all", least=1, most=MOST)] = 2500
    lr: Annotated[float, Setting("highest learning rate", above=0)] = 3e-3
    warmup: Annotated[int, Setting("steps in which the rate rises to the highest", least=0, most=MOST)] = 100
    schedule: Annotated[
        Name, Setting("how the rate falls: a cosine, a line, or warm-up-stable-decay", source="arXiv:2404.06395 (wsd)")
    ] = "cosine"
    decay: Annotated[float, Setting("of wsd: last share of the steps, in which the rate falls", above=0, most=1)] = 0.2
    floor: Annotated[float, Setting("share of the rate left at the last step", least=0, most=1)] = 0.1


def rate(settings: ScheduleSettings, step: int) -> float:
    """The rate for optimizer step `step` (0-based)."""
    s = settings
    if s.schedule == "cosine":
        return warmup_cosine(step, s.lr, s.warmup, s.steps, s.floor * s.lr)
    if step < s.warmup:
        return s.lr * (step + 1) / s.warmup
    part = min(1.0, (step - s.warmup) / max(1, s.steps - s.warmup))
    fall = 1 - part if s.schedule == "linear" else min(1.0, (1 - part) / s.decay)
    return s.lr * (s.floor + (1 - s.floor) * fall)


def warmup_cosine(step: int, peak: float, warmup: int, steps: int, floor: float = 0.0) -> float:
    """The rate for optimizer step `step` (0-based) of `steps`."""
    if step < warmup:
        return peak * (step + 1) / warmup
    part = min(1.0, (step - warmup) / max(1, steps - warmup))
    return floor + (peak - floor) * (1 + math.cos(math.pi * part)) / 2


__all__ = ["MOST", "ScheduleSettings", "rate", "warmup_cosine"]
