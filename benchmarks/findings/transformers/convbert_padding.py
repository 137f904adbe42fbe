"""ConvBERT: padding beside a token changes it: the mask does not reach the convolution."""

import torch
from transformers import ConvBertConfig, ConvBertForMaskedLM

torch.manual_seed(0)
sizes = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 64}
config = ConvBertConfig(**sizes, embedding_size=32, conv_kernel_size=3, pad_token_id=0, initializer_range=0.3)
model = ConvBertForMaskedLM(config).eval()
ids = torch.randint(4, 64, (1, 12))
ids[:, 8:] = 0
mask = (torch.arange(12) < 8).long()[None]
differ = (model(ids, attention_mask=mask).logits[:, :8] - model(ids[:, :8]).logits).abs().amax((0, 2))
print("logits of the 8 real tokens differ by", [f"{x:.1e}" for x in differ.tolist()], "demanded 0")
assert differ[-1] > 1e-2
assert differ[0] < 1e-5
