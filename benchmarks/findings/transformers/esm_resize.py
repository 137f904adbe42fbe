"""ESM: after resize_token_embeddings the model cannot be called."""

import torch
from transformers import EsmConfig, EsmForMaskedLM

sizes = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
model = EsmForMaskedLM(EsmConfig(**sizes, position_embedding_type="rotary", pad_token_id=1, mask_token_id=3)).eval()
ids = torch.randint(4, 64, (1, 8))
model(ids)
model.resize_token_embeddings(69)
try:
    model(ids)
except RuntimeError as raised:
    print(f"raised: {raised}; the bias of the head has {len(model.lm_head.bias)} numbers")
else:
    raise AssertionError("it answered")
