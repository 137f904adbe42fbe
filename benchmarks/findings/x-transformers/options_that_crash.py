"""Options that are accepted together and then raise about shapes."""

import torch
from x_transformers import Decoder, TransformerWrapper

torch.manual_seed(0)
wrap = {"num_tokens": 64, "max_seq_len": 64}
cases = {
    "rel_pos_bias, rotary_pos_emb": ({"rel_pos_bias": True, "rotary_pos_emb": True}, {}),
    "attn_use_cope, attn_cope_soft_onehot_pos": ({"attn_use_cope": True, "attn_cope_soft_onehot_pos": True}, {}),
    "tie_embedding, emb_dim": ({}, {"tie_embedding": True, "emb_dim": 16}),
    "l2norm_embed, scaled_sinu_pos_emb": ({}, {"l2norm_embed": True, "scaled_sinu_pos_emb": True}),
    "polar_pos_emb, attn_kv_heads": ({"polar_pos_emb": True, "attn_kv_heads": 2}, {}),
    "attn_value_rmsnorm, attn_kv_heads": ({"attn_value_rmsnorm": True, "attn_kv_heads": 2}, {}),
    "attn_use_rel_proj_pos_bias, attn_num_mem_kv": ({"attn_use_rel_proj_pos_bias": True, "attn_num_mem_kv": 2}, {}),
    "attn_sparse_topk=20, 12 tokens": ({"attn_sparse_topk": 20}, {}),
}
for name, (inside, outside) in cases.items():
    try:
        layers = Decoder(dim=32, depth=2, heads=4, **inside)
        TransformerWrapper(attn_layers=layers, **wrap, **outside)(torch.randint(64, (2, 12)))
    except Exception as raised:
        print(f"{name}: {type(raised).__name__}: {' '.join(str(raised).split())[:70]}")
    else:
        raise AssertionError(f"{name}: it answered")
