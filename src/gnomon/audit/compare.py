"""Numbers that laws compare by."""

from math import inf

import torch

from gnomon.shapes import Float


def difference(a: Float, b: Float) -> float:
    """The largest absolute difference; equal infinities differ by 0, a NaN or another shape by infinity."""
    if a.shape != b.shape:
        return inf
    a, b = a.detach().to(torch.float64), b.detach().to(torch.float64)
    return float(torch.where(a == b, 0.0, (a - b).abs()).nan_to_num(nan=inf, posinf=inf).amax()) if a.numel() else 0.0


def largest(x: Float) -> float:
    """The largest finite absolute value."""
    return float(x.detach().to(torch.float64).nan_to_num(0.0, 0.0, 0.0).abs().amax()) if x.numel() else 0.0


__all__ = ["difference", "largest"]
