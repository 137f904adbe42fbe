"""With attn_num_mem_kv and RoPE, left padding moves the text away from the memory keys."""

import torch
from x_transformers import Decoder, TransformerWrapper

torch.manual_seed(0)
layers = Decoder(dim=32, depth=2, heads=4, rotary_pos_emb=True, attn_num_mem_kv=4)
model = TransformerWrapper(num_tokens=64, max_seq_len=64, attn_layers=layers).eval()
text = torch.randint(64, (1, 8))
alone = model(text)
padded = torch.cat([torch.zeros(1, 4, dtype=torch.long), text], 1)
got = model(padded, seq_start_pos=torch.tensor([4]))[:, 4:]  # what generate(prompt_lens=...) says of this row
error = (got - alone).abs().max().item()
print(f"logits of the same text padded by 4 on the left differ by {error:.3f}, demanded 0")
assert error > 1e-2
