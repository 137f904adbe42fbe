"""A Decoder with mv_split_residual sees tokens to come."""

import torch
from x_transformers import Decoder, TransformerWrapper

torch.manual_seed(0)
layers = Decoder(dim=32, depth=2, heads=4, rotary_pos_emb=True, mv_split_residual=True)
model = TransformerWrapper(num_tokens=64, max_seq_len=64, attn_layers=layers).eval()
ids = torch.randint(64, (1, 12))
changed = ids.clone()
changed[0, -1] = (ids[0, -1] + 1) % 64  # the last token only
error = (model(ids)[:, :-1] - model(changed)[:, :-1]).abs().max().item()
print(f"logits of the 11 tokens before it change by {error:.4f}, demanded 0")
assert error > 1e-3
