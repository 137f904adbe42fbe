"""attn_gumbel_softmax draws its noise in evaluation mode too."""

import torch
from x_transformers import Decoder, TransformerWrapper

torch.manual_seed(0)
layers = Decoder(dim=32, depth=2, heads=4, rotary_pos_emb=True, attn_gumbel_softmax=True)
model = TransformerWrapper(num_tokens=64, max_seq_len=64, attn_layers=layers).eval()

ids = torch.randint(64, (1, 12))
error = (model(ids) - model(ids)).abs().max().item()
print(f"two calls in evaluation mode differ by {error:.3f}, demanded 0")
assert error > 1e-2
