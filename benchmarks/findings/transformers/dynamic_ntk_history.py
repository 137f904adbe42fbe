"""Dynamic NTK: the same text gets other logits after a longer one was read."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)

sizes = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}

dynamic = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 4.0}
config = LlamaConfig(**sizes, max_position_embeddings=16, rope_parameters=dynamic, initializer_range=0.3)
model = LlamaForCausalLM(config).eval()
ids = torch.randint(64, (1, 48))
first = model(ids[:, :20]).logits
model(ids)  # somebody else's longer text
error = (model(ids[:, :20]).logits - first).abs().max().item()
print(f"logits of the same 20 tokens differ by {error:.3f}, demanded 0")
assert error > 1e-2
