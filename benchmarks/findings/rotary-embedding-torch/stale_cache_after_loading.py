"""Angles kept from an earlier call survive load_state_dict."""

import torch
from rotary_embedding_torch import RotaryEmbedding

torch.manual_seed(0)

rotate, trained = RotaryEmbedding(dim=32), RotaryEmbedding(dim=32, theta=1_000_000)
x = torch.ones(1, 1, 40, 32)
rotate.rotate_queries_or_keys(x)  # a first call, before the checkpoint is loaded
rotate.load_state_dict(trained.state_dict())
error = (rotate.rotate_queries_or_keys(x) - trained.rotate_queries_or_keys(x)).abs().max().item()
print(f"after loading the weights of another module the two differ by {error:.2f}, demanded 0")
assert error > 1
