"""rotate_queries_with_cached_keys with xPos: queries and keys are scaled from different middles."""

import torch
from rotary_embedding_torch import RotaryEmbedding

torch.manual_seed(0)

rotate = RotaryEmbedding(dim=32, use_xpos=True)
q, k = torch.randn(2, 1, 1, 1024, 32)
turned, keys = rotate.rotate_queries_and_keys(q, k)
want = (turned @ keys.mT)[0, 0, -1]
turned, keys = RotaryEmbedding(dim=32, use_xpos=True).rotate_queries_with_cached_keys(q[:, :, -1:], k)
got = (turned @ keys.mT)[0, 0, -1]
print(f"scores of the last query: the nearest key gets {got[-1]:.3f} from a cache and {want[-1]:.3f} without")
assert (got - want).abs().max() > 0.5
