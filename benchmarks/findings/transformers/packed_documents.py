"""Documents packed by position_ids see each other unless use_cache=False is said, in training mode too."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
sizes = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
model = LlamaForCausalLM(LlamaConfig(**sizes, initializer_range=0.3)).train()
ids = torch.randint(64, (1, 12))
positions = torch.cat([torch.arange(4), torch.arange(8)])[None]  # as DataCollatorWithFlattening makes them
alone = model(ids[:, 4:]).logits
errors = [
    (model(ids, position_ids=positions, **said).logits[:, 4:] - alone).abs().max().item()
    for said in ({}, {"use_cache": False})
]
print(f"logits of the second document differ by {errors[0]:.3f}, with use_cache=False by {errors[1]:.1e}, demanded 0")
assert errors[0] > 1e-2
assert errors[1] < 1e-4
