"""polar_pos_emb gives positions of row b to head b, where there are as many rows as heads."""

import torch
from x_transformers import Decoder, TransformerWrapper

torch.manual_seed(0)
layers = Decoder(dim=32, depth=2, heads=4, polar_pos_emb=True)
model = TransformerWrapper(num_tokens=64, max_seq_len=64, attn_layers=layers).eval()

ids = torch.randint(64, (4, 8))  # four rows, four heads
positions = torch.arange(8) * torch.tensor([1, 2, 3, 4])[:, None]  # a step of its own in each row
alone = model(ids[1:2], pos=positions[1])
error = (model(ids, pos=positions)[1] - alone[0]).abs().max().item()
print(f"logits of row 1 differ by {error:.3f} from those of the row by itself, demanded 0")
assert error > 1e-2
try:
    model(ids[:2], pos=positions[:2])
except RuntimeError as raised:
    print(f"with two rows: {raised}")
