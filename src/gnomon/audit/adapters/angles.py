"""Angles that pairs of channels turn by, read off cosines and sines, beside those that a config promises."""

import torch

from gnomon.positions import RoPE
from gnomon.shapes import Float


def expected_frequencies(rope: RoPE, length: int) -> tuple[list[float] | Float, float]:
    """The frequencies of a rotation's pairs in a text of this length, and its factor on the lengths of vectors."""
    if rope.scaling is None:
        return rope.frequencies(), 1.0
    by_length = rope.scaling.frequencies_at(torch.tensor(length), rope.base, rope.rotary_dim)
    return rope.frequencies() if by_length is None else by_length, rope.scaling.magnitude


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


__all__ = ["angles_of", "expected_frequencies"]
