"""A model with attn_aggregated_residuals cannot be deep-copied."""

from copy import deepcopy

from x_transformers import Decoder, TransformerWrapper

layers = Decoder(
    dim=32, depth=2, heads=4, attn_aggregated_residuals=True, attn_aggregated_residual_kwargs={"lora_rank": 8}
)
model = TransformerWrapper(num_tokens=64, max_seq_len=64, attn_layers=layers)
try:
    deepcopy(model)
except TypeError as raised:
    print(f"raised: {raised}")
else:
    raise AssertionError("it was copied")
