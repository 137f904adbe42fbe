"""get_axial_freqs(offsets=...) with freqs_for='lang' takes the first axis's offset for all, and keeps it."""

import torch
from rotary_embedding_torch import RotaryEmbedding

torch.manual_seed(0)

rotate = RotaryEmbedding(dim=16)
got = rotate.get_axial_freqs(4, 4, offsets=(3, 5))
right = RotaryEmbedding(dim=16, cache_if_possible=False).get_axial_freqs(4, 4, offsets=(3, 5))
print(f"angles along the second axis: {got[0, :, 16].tolist()}, demanded {right[0, :, 16].tolist()}")
x = torch.ones(1, 1, 4, 16)
error = (rotate.rotate_queries_or_keys(x) - RotaryEmbedding(dim=16).rotate_queries_or_keys(x)).abs().max().item()
print(f"queries turned by the same module afterwards are off by {error:.2f}, demanded 0")
assert error > 1
