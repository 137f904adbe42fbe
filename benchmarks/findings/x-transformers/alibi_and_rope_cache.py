"""alibi_pos_bias with rotary_pos_emb answers as a whole and raises as soon as it decodes from a cache."""

import torch
from x_transformers import Decoder, TransformerWrapper

torch.manual_seed(0)
layers = Decoder(dim=32, depth=2, heads=4, alibi_pos_bias=True, rotary_pos_emb=True)
model = TransformerWrapper(num_tokens=64, max_seq_len=64, attn_layers=layers).eval()

ids = torch.randint(64, (1, 12))
_, cache = model(ids[:, :11], return_intermediates=True)
try:
    model(ids, cache=cache)
except RuntimeError as raised:
    print(f"raised: {raised}")
else:
    raise AssertionError("it answered")
