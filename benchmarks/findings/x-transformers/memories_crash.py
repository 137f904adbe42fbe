"""Memories of an earlier segment (`mems`) raise with PoPE, forgetting attention, value residuals and two streams."""

import torch
from x_transformers import Decoder, TransformerWrapper

ids = torch.randint(64, (1, 12))
for option in ("polar_pos_emb", "attn_data_dependent_alibi", "add_value_residual", "num_residual_streams"):
    layers = Decoder(dim=32, depth=2, heads=4, **{option: 2 if option.startswith("num") else True})
    model = TransformerWrapper(num_tokens=64, max_seq_len=64, max_mem_len=64, attn_layers=layers).eval()
    _, memories = model(ids, return_mems=True)
    try:
        model(ids, mems=memories)
    except RuntimeError as raised:
        print(f"{option}: {str(raised)[:90]}")
    else:
        raise AssertionError(f"{option}: it answered")
