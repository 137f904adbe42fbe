"""attention_logit_softcapping (Gemma 2): reading a prompt through the cache sees the tokens to come."""

import torch
from litgpt import GPT, Config
from litgpt.generate.base import generate

torch.manual_seed(0)
torch.set_grad_enabled(False)
sizes = {"block_size": 64, "n_layer": 2, "n_embd": 64, "n_head": 4, "padded_vocab_size": 64, "rotary_percentage": 1.0}
model = GPT(Config(**sizes, attention_logit_softcapping=50.0)).eval()
for weight in model.parameters():
    if weight.dim() > 1:
        weight.normal_(0, 0.3)
ids, places = torch.randint(64, (1, 12)), torch.arange(12)
full = model(ids)
model.set_kv_cache(batch_size=1)
got = model(ids, places, input_pos_maxp1=12)  # as litgpt.generate reads the prompt
error = (got - full).abs().max().item()
changed = ids.clone()
changed[0, -1] = (ids[0, -1] + 1) % 64
ahead = (model(changed, places, input_pos_maxp1=12) - got)[:, :-1].abs().max().item()
print(f"logits differ by {error:.2f} from those without a cache (of size {full.abs().max():.1f})")
print(f"the last token moves the logits of those before it by {ahead:.2f}")
written, again = generate(model, ids[0], 24, temperature=0.0, top_k=1), ids
model.clear_kv_cache()
while again.shape[1] < 24:
    again = torch.cat([again, model(again)[:, -1:].argmax(-1)], 1)
print(f"generate writes {written[12:].tolist()}")
print(f"greedily it is  {again[0, 12:].tolist()}")
assert error > 1e-2
assert ahead > 1e-2
