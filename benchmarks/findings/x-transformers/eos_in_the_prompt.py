"""generate(eos_token=...) blanks the whole answer if the prompt holds that token."""

import torch
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

torch.manual_seed(0)
layers = Decoder(dim=32, depth=2, heads=4, rotary_pos_emb=True)
model = TransformerWrapper(num_tokens=64, max_seq_len=64, attn_layers=layers).eval()

prompt = torch.tensor([[9, 3, 20, 30]])  # 3 ends texts, and here an earlier turn
free = AutoregressiveWrapper(model).generate(prompt, 8, temperature=0.0)
got = AutoregressiveWrapper(model).generate(prompt, 8, temperature=0.0, eos_token=3)
print(f"greedy text {free.tolist()}; with eos_token=3 {got.tolist()}")
assert 3 not in free[0]
assert got.tolist() == [[0]]
