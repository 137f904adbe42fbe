"""Falcon with ALiBi adds the bias twice under eager attention, and so wherever attentions are asked for."""

import torch
from transformers import FalconConfig, FalconForCausalLM
from transformers.models.falcon import modeling_falcon

torch.manual_seed(0)
sizes = {
    "vocab_size": 64,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "initializer_range": 0.3,
}
sdpa, eager = (
    FalconForCausalLM(FalconConfig(**sizes, alibi=True, attn_implementation=kind)).eval() for kind in ("sdpa", "eager")
)
eager.load_state_dict(sdpa.state_dict())
ids = torch.randint(64, (1, 12))
want = sdpa(ids).logits
error = (eager(ids).logits - want).abs().max().item()
shown = (sdpa(ids, output_attentions=True).logits - want).abs().max().item()
once = modeling_falcon.build_alibi_tensor
modeling_falcon.build_alibi_tensor = lambda *args, **more: once(*args, **more) / 2
halved = (eager(ids).logits - want).abs().max().item()
print(f"eager and sdpa differ by {error:.3f}, sdpa with output_attentions from without by {shown:.3f}, demanded 0")
print(f"eager with half the slopes differs from sdpa with all of them by {halved:.1e}")
assert error > 1e-2
assert halved < 1e-4
