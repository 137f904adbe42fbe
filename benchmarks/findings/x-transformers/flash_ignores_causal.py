"""model(ids, causal=False) is ignored with attn_flash."""

import torch
from x_transformers import Decoder, TransformerWrapper

torch.manual_seed(0)
options = {"dim": 32, "depth": 2, "heads": 4, "rotary_pos_emb": True}
plain, flash = (
    TransformerWrapper(num_tokens=64, max_seq_len=64, attn_layers=Decoder(**options, attn_flash=on)).eval()
    for on in (False, True)
)
flash.load_state_dict(plain.state_dict())
ids = torch.randint(64, (1, 12))
error = (plain(ids, causal=False) - flash(ids, causal=False)).abs().max().item()
same = (plain(ids) - flash(ids)).abs().max().item()
print(f"with causal=False the two differ by {error:.3f}, demanded 0; without it by {same:.1e}")
assert error > 1e-2 > same
