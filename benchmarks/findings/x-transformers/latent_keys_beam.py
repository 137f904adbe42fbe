"""Beam search raises with latent keys (attn_use_latent_kv) that have no subheads of their own for RoPE."""

import torch
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

torch.manual_seed(0)
layers = Decoder(dim=32, depth=2, heads=4, rotary_pos_emb=True, attn_use_latent_kv=True, attn_dim_latent_kv=16)
model = TransformerWrapper(num_tokens=64, max_seq_len=64, attn_layers=layers).eval()

prompt = torch.randint(64, (1, 5))
print("without a cache:", AutoregressiveWrapper(model).beam_search(prompt, 4, beams=2, cache_kv=False).tolist())
try:
    AutoregressiveWrapper(model).beam_search(prompt, 4, beams=2)
except Exception as raised:
    print(f"with one: {type(raised).__name__}: {raised}")
else:
    raise AssertionError("it answered")
