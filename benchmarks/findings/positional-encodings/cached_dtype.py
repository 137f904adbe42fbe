"""A table kept from an earlier call is given back in that call's dtype."""

import torch
from positional_encodings.torch_encodings import PositionalEncoding1D

encode = PositionalEncoding1D(32)
x = torch.zeros(1, 600, 32)
right = PositionalEncoding1D(32)(x)
encode(x.bfloat16())  # somebody evaluates in half precision
got = encode(x)
print(f"asked in float32 it answers in {got.dtype}, off by {(got - right).abs().max():.4f}")
assert got.dtype == torch.bfloat16
