"""An Encoder with shift_tokens lets padding on the right into the feed-forward network."""

import torch
from x_transformers import Encoder, TransformerWrapper

torch.manual_seed(0)
layers = Encoder(dim=32, depth=2, heads=4, rotary_pos_emb=True, shift_tokens=1)
model = TransformerWrapper(num_tokens=64, max_seq_len=64, attn_layers=layers).eval()

ids = torch.randint(64, (1, 12))
mask = torch.arange(12)[None] < 8
error = (model(ids, mask=mask)[:, :8] - model(ids[:, :8])).abs().max().item()
print(f"logits of the 8 real tokens differ by {error:.3f} from those of the text alone, demanded 0")
assert error > 1e-2
