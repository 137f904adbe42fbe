"""Left padding under a causal mask gives NaN on the fast path of inference, and is right on the slow one."""

import torch
from torch import nn

torch.manual_seed(0)

layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
x, future = torch.randn(1, 6, 32), torch.ones(6, 6, dtype=torch.bool).triu(1)
padding = torch.tensor([[True, True, False, False, False, False]])
alone = model(x[:, 2:], future[2:, 2:])
slow = (model(x, future, padding)[:, 2:] - alone).abs().max().item()  # with gradients there is no fast path
with torch.no_grad():
    fast = model(x, future, padding)[:, 2:]
print(f"real tokens: off by {slow:.1e} with gradients; without, {int(fast.isnan().sum())} of {fast.numel()} are NaN")
assert slow < 1e-5
assert fast.isnan().all()
