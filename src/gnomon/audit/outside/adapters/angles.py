"""Angles that pairs of channels turn by, read off cosines and sines, beside those that a config promises."""

import torch

from gnomon.shapes import Float


def angles_of(cos: Float, sin: Float, frequencies: list[float] | Float, factor: float) -> tuple[Float, Float]:
    """What `Target.table` gives, from cosines and sines (T, pairs) and the promise: radians a token of each pair, and a
    factor on the lengths of vectors. Of all angles with this cosine and sine, those next to the promised ones."""
    cos, sin = cos.double().cpu(), sin.double().cpu()
    promised = torch.as_tensor(frequencies, dtype=torch.float64, device="cpu")
    want = torch.arange(len(cos), dtype=torch.float64, device="cpu")[:, None] * promised  # (T, pairs)
    apart, turn = torch.atan2(sin, cos) - want, 2 * torch.pi
    got = want + apart - turn * (apart / turn).round()
    length = torch.full((len(cos), 1), factor, dtype=torch.float64, device="cpu")
    return torch.cat([got, torch.hypot(cos, sin).mean(1, keepdim=True)], 1), torch.cat([want, length], 1)


__all__ = ["angles_of"]
