"""model.bfloat16() rounds the positions of RoPE themselves: beyond 256 neighbours fall together."""

from copy import deepcopy

import torch
from x_transformers import Decoder, TransformerWrapper

torch.manual_seed(0)
layers = Decoder(dim=32, depth=2, heads=4, rotary_pos_emb=True, rotary_emb_dim=64)
model = TransformerWrapper(num_tokens=64, max_seq_len=64, attn_layers=layers).eval()

half = deepcopy(model).bfloat16()
positions = torch.tensor([0, 255, 2000, 2001])
angles, rounded = (m.attn_layers.rotary_pos_emb(positions)[0][0, :, 0] for m in (model, half))
print(f"angle of the fastest pair: {angles.tolist()} in float32, {rounded.tolist()} in bfloat16")
assert rounded[2] == rounded[3]
ids, near = torch.randint(64, (1, 12)), torch.arange(12)[None]
moved = [(m(ids, pos=near + 2000) - m(ids, pos=near)).abs().max().item() for m in (model, half)]
print(f"RoPE is relative: logits move by {moved[0]:.1e} in float32 and {moved[1]:.3f} in bfloat16 at position 2000")
assert moved[1] > 0.05
