"""scaled_sinu_pos_emb cannot generate from prompts of different lengths."""

import torch
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

torch.manual_seed(0)
layers = Decoder(dim=32, depth=2, heads=4)
model = TransformerWrapper(num_tokens=64, max_seq_len=64, attn_layers=layers, scaled_sinu_pos_emb=True).eval()

prompts = [torch.randint(64, (5,)), torch.randint(64, (8,))]
try:
    AutoregressiveWrapper(model).generate(prompts, 4)
except RuntimeError as error:
    print(f"generate() of two prompts of 5 and 8 tokens raised: {str(error)[:90]}...")
else:
    raise AssertionError("it answered")
