"""freqs_for='constant', custom_freqs of another width and xPos with heads last raise about shapes."""

import torch
from rotary_embedding_torch import RotaryEmbedding

torch.manual_seed(0)

x = torch.ones(1, 4, 8, 32)
calls = {
    "freqs_for='constant'": lambda: RotaryEmbedding(32, freqs_for="constant").rotate_queries_or_keys(x),
    "custom_freqs": lambda: RotaryEmbedding(32, custom_freqs=torch.ones(8)).rotate_queries_or_keys(x),
    "use_xpos, seq_before_head_dim": lambda: RotaryEmbedding(
        32, use_xpos=True, seq_before_head_dim=True
    ).rotate_queries_with_cached_keys(x[:, -1:], x),
}
for name, call in calls.items():
    try:
        call()
    except RuntimeError as raised:
        print(f"{name}: {str(raised)[:90]}")
    else:
        raise AssertionError(f"{name}: it answered")
