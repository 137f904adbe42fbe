"""What is returned is the kept table itself: changed in place, it is changed for all later calls."""

import torch
from positional_encodings.torch_encodings import PositionalEncoding1D

encode, x = PositionalEncoding1D(32), torch.ones(1, 8, 32)
first = encode(x).clone()
encode(x).add_(x)  # encodings and tokens summed in place
error = (encode(x) - first).abs().max().item()
print(f"the next call differs by {error:.2f}, demanded 0")
assert error == 1
