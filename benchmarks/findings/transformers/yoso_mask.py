"""YOSO: the mask hides nothing: padding changes every token of the text."""

import torch
from transformers import YosoConfig, YosoForMaskedLM

torch.manual_seed(0)
sizes = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
model = YosoForMaskedLM(YosoConfig(**sizes, max_position_embeddings=64, pad_token_id=1, initializer_range=0.3)).eval()
ids = torch.randint(4, 64, (1, 12))
mask = (torch.arange(12) < 8).long()[None]
alone, got = model(ids[:, :8]).logits, model(ids, attention_mask=mask).logits[:, :8]
unmasked = (got - model(ids).logits[:, :8]).abs().max().item()
print(f"logits of the 8 real tokens differ by {(got - alone).abs().max():.3f} from those of the text alone, demanded 0")
print(f"and by {unmasked:.1e} from those without any mask")
assert (got - alone).abs().max() > 1e-2
