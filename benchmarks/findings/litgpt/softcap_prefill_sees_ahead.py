"""attention_logit_softcapping (Gemma 2): reading a prompt through the cache sees the tokens to come."""

import torch
from litgpt import GPT, Config

torch.manual_seed(0)
sizes = {"block_size": 64, "n_layer": 2, "n_embd": 64, "n_head": 4, "padded_vocab_size": 64, "rotary_percentage": 1.0}

model = GPT(Config(**sizes, attention_logit_softcapping=50.0)).eval()
ids, places = torch.randint(64, (1, 12)), torch.arange(12)
full = model(ids)
model.set_kv_cache(batch_size=1)
got = model(ids, places, input_pos_maxp1=12)  # as litgpt.generate reads the prompt
error = (got - full).abs().max().item()
changed = ids.clone()
changed[0, -1] = (ids[0, -1] + 1) % 64
ahead = (model(changed, places, input_pos_maxp1=12) - got)[:, :-1].abs().max().item()
print(f"logits differ by {error:.3f} from those without a cache; the last token moves earlier ones by {ahead:.3f}")
assert error > 1e-2
assert ahead > 1e-2
