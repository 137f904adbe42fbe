"""is_causal=True without a mask raises with gradients, and without them looks ahead."""

import torch
from torch import nn

torch.manual_seed(0)

layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
x = torch.randn(1, 6, 32)
future = torch.ones(6, 6, dtype=torch.bool).triu(1)
with torch.no_grad():
    error = (model(x, is_causal=True) - model(x, future)).abs().max().item()
    same = torch.equal(model(x, is_causal=True), model(x))
print(f"differs by {error:.3f} from the causal answer; equal to the answer without any mask: {same}")
assert same
try:
    model(x, is_causal=True)
except RuntimeError as raised:
    print(f"with gradients: {str(raised)[:60]}")
