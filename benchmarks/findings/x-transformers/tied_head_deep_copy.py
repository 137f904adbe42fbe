"""tie_embedding: the head of a deep copy still reads the embedding of the original."""

from copy import deepcopy

import torch
from x_transformers import Decoder, TransformerWrapper

torch.manual_seed(0)
layers = Decoder(dim=32, depth=2, heads=4, rotary_pos_emb=True)
model = TransformerWrapper(num_tokens=64, max_seq_len=64, attn_layers=layers, tie_embedding=True).eval()

ids = torch.randint(64, (1, 8))
average = deepcopy(model)  # as an EMA of the weights is made
before = average(ids)
torch.nn.init.zeros_(model.token_emb.emb.weight)  # training changes the original, not the copy
error = (average(ids) - before).abs().max().item()
print(f"logits of the copy change by {error:.3f} as the original's embedding changes, demanded 0")
assert error > 1e-2
