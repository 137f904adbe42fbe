"""In which dtype training multiplies, and the scale that keeps gradients of float16 from vanishing.

Weights and optimizer stay in float32; below it only products run, under autocast. Positions never do: an encoding makes
its tables outside autocast, in float32 or wider. A gradient below 6e-8 is 0 in float16, so there the loss is multiplied
by a scale before the backward pass and the gradient divided by it afterwards (Micikevicius et al. 2018,
arXiv:1710.03740, section 3.2). The scale halves when a gradient overflows, and doubles after PATIENCE steps without.
"""

from contextlib import AbstractContextManager, nullcontext

import torch

from gnomon.device import resolve_dtype

FIRST, LARGEST, PATIENCE = 2.0**16, 2.0**24, 2000


def training_dtype(name: str, device: torch.device) -> torch.dtype:
    """The dtype of a name. "auto" is float32 on a CPU: there a stopwatch says whether bfloat16 pays, and what numbers a
    seed gives must not depend on how busy the machine is. On CUDA: bfloat16, or float16 where only that is fast."""
    if name != "auto":
        return resolve_dtype(name, device)
    if device.type == "cpu":
        return torch.float32
    dtype = resolve_dtype(name, device)
    return torch.float16 if device.type == "cuda" and dtype == torch.float32 else dtype


def mixed_precision(device: torch.device, dtype: torch.dtype) -> AbstractContextManager[object]:
    """Autocast to a dtype below float32; nothing for float32 and float64."""
    return torch.autocast(device.type, dtype) if dtype.itemsize < 4 else nullcontext()


def next_scale(scale: float, good_steps: int, overflowed: bool) -> tuple[float, int]:
    """The scale after a step, and how many good steps there were since it changed."""
    if overflowed:
        return max(scale / 2, 1.0), 0
    if good_steps + 1 == PATIENCE:
        return min(scale * 2, LARGEST), 0
    return scale, good_steps + 1


__all__ = ["FIRST", "LARGEST", "PATIENCE", "mixed_precision", "next_scale", "training_dtype"]
