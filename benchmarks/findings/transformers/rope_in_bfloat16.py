"""model.bfloat16() rounds the frequencies of RoPE: at position 8000 cosines are off by more than 0.1."""

from copy import deepcopy

import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)

sizes = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}

model = LlamaForCausalLM(LlamaConfig(**sizes, max_position_embeddings=16384, head_dim=64)).eval()
half = deepcopy(model).bfloat16()  # from_pretrained(dtype=torch.bfloat16) keeps the frequencies in float32
for position in (0, 1000, 8000):
    at, x = torch.tensor([[position]]), torch.zeros(1, 1, 32)
    error = (half.model.rotary_emb(x, at)[0] - model.model.rotary_emb(x, at)[0]).abs().max().item()
    print(f"position {position}: cosines differ by {error:.3f}, rounding of bfloat16 alone is 0.004")
assert error > 0.1
