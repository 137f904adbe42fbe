"""With num_memory_tokens, seq_start_pos masks the memory tokens, and leaves padding visible."""

import torch
from x_transformers import Decoder, TransformerWrapper

torch.manual_seed(0)
layers = Decoder(dim=32, depth=2, heads=4, rotary_pos_emb=True)
model = TransformerWrapper(num_tokens=64, max_seq_len=64, attn_layers=layers, num_memory_tokens=4).eval()
text = torch.randint(64, (1, 8))
alone = model(text)
padded = torch.cat([torch.zeros(1, 4, dtype=torch.long), text], 1)
got = model(padded, seq_start_pos=torch.tensor([4]))[:, 4:]  # what generate(prompt_lens=...) says of this row
error = (got - alone).abs().max().item()
print(f"logits of the same text padded by 4 on the left differ by {error:.3f}, demanded 0")
assert error > 1e-2
