"""`mask` is ignored as soon as self_attn_kv_mask or seq_start_pos is given too."""

import torch
from x_transformers import Encoder, TransformerWrapper

torch.manual_seed(0)
layers = Encoder(dim=32, depth=2, heads=4, rotary_pos_emb=True)
model = TransformerWrapper(num_tokens=64, max_seq_len=64, attn_layers=layers).eval()

ids = torch.randint(64, (1, 12))
mask = torch.arange(12)[None] < 8
alone = model(ids[:, :8])
got = model(ids, mask=mask, self_attn_kv_mask=torch.ones_like(mask))[:, :8]  # a second mask that hides nothing
error = (got - alone).abs().max().item()
print(f"logits of the 8 real tokens differ by {error:.3f} from those of the text alone, demanded 0")
assert error > 1e-2
assert (model(ids, mask=mask)[:, :8] - alone).abs().max() < 1e-5
