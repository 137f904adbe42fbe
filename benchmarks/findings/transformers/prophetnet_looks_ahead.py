"""ProphetNet: logits depend on tokens to come, so a cache gives others than reading at once."""

import torch
from transformers import ProphetNetConfig, ProphetNetForConditionalGeneration

torch.manual_seed(0)

sizes = {f"num_{part}coder_{what}": n for part in ("en", "de") for what, n in (("layers", 2), ("attention_heads", 4))}
config = ProphetNetConfig(vocab_size=64, hidden_size=32, encoder_ffn_dim=64, decoder_ffn_dim=64, init_std=0.3, **sizes)
model = ProphetNetForConditionalGeneration(config).eval()
source, ids = torch.randint(3, 64, (1, 7)), torch.randint(3, 64, (1, 12))
full = model(source, decoder_input_ids=ids).logits
changed = ids.clone()
changed[0, 3:6] = ids[0, 3:6] % 60 + 4
ahead = (model(source, decoder_input_ids=changed).logits - full)[:, :3].abs().max().item()
state, steps = None, []
for i in range(12):
    step = model(source, decoder_input_ids=ids[:, i : i + 1], cache=state, use_cache=True)
    state, steps = step.cache, [*steps, step.logits]
error = (torch.cat(steps, 1) - full).abs().max().item()
print(f"tokens 4 to 6 move logits of tokens 1 to 3 by {ahead:.3f}, a cache all by {error:.3f}, demanded 0")
assert ahead > 1e-3
assert error > 1e-3
