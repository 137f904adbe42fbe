"""Queries in bfloat16 round the positions themselves, and what they left in the cache spoils float32 calls."""

import torch
from rotary_embedding_torch import RotaryEmbedding

torch.manual_seed(0)

rotate = RotaryEmbedding(dim=32)  # in float32, as under autocast
x = torch.randn(32).expand(1, 1, 600, 32)  # one vector everywhere: neighbours then have one score
right = RotaryEmbedding(dim=32).rotate_queries_or_keys(x)
half = rotate.rotate_queries_or_keys(x.bfloat16()).float()
scores = (half[0, 0, 1:] * half[0, 0, :-1]).sum(-1)
same = (right[0, 0, 1] * right[0, 0, 0]).sum()
print(f"scores of neighbours: {scores.min():.1f} to {scores.max():.1f}, demanded {same:.1f}")
first = int(((half - right).abs().amax(-1)[0, 0] > 0.3).nonzero()[0])
after = (rotate.rotate_queries_or_keys(x) - right).abs().max().item()
print(f"first position off by more than 0.3: {first}; float32 through the same module is then off by {after:.2f}")
assert first == 257
assert after > 1
