""".bfloat16() rounds the positions themselves: beyond 256 neighbours fall together."""

import torch
from positional_encodings.torch_encodings import PositionalEncoding1D

x = torch.zeros(1, 600, 32)
right, half = PositionalEncoding1D(32)(x), PositionalEncoding1D(32).bfloat16()(x)
error = (half - right).abs().amax((0, 2))
print(
    f"off by {error.max():.2f}; positions 256 and 257 have the same vector: {torch.equal(half[0, 256], half[0, 257])}"
)
assert torch.equal(half[0, 256], half[0, 257])
