"""Dynamic NTK: decoding from a cache past the trained length gives other logits than reading at once."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)

sizes = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}

rope = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 4.0}
config = LlamaConfig(**sizes, max_position_embeddings=16, rope_parameters=rope, initializer_range=0.3)
model = LlamaForCausalLM(config).eval()
ids = torch.randint(64, (1, 24))
start = model(ids[:, :14])
state, steps = start.cache, [start.logits]
for i in range(14, 24):
    step = model(ids[:, i : i + 1], cache=state)
    state, steps = step.cache, [*steps, step.logits]
differ = (torch.cat(steps, 1) - model(ids).logits).abs().amax((0, 2))
print(f"the last token's logits differ by {differ[-1]:.3f}, demanded 0")
say = {"max_new_tokens": 20, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
texts = [model.generate(ids[:, :10], use_cache=use, **say)[0].tolist() for use in (True, False)]
print("greedy texts with and without a cache are equal:", texts[0] == texts[1])
assert differ[-1] > 1e-2
