"""SmolLM2 in the transformers library: the same file decoded by the gguf package and put in place by hand; and the same
model with angles that are not rounded."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
import transformers
from transformers.models.llama.modeling_llama import LlamaRMSNorm

#: Hugging Face's names for the parts of a Llama block
NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
}
TEXT = (
    "The ancient library stood at the edge of the town, and in it were 1,984 books in seven languages; nobody had "
    'counted them since the flood of \'36. "¿Quién los leyó?" asked the girl.\n\n'
    "    def answer(x):\n        return x\n\n"
)


def in_transformers(path: Path) -> transformers.LlamaForCausalLM:
    """The model of a GGUF file of SmolLM2."""
    reader = gguf.GGUFReader(path)

    def key(name: str) -> float:
        return reader.get_field(f"llama.{name}").contents()

    heads, kv_heads = key("attention.head_count"), key("attention.head_count_kv")
    config = transformers.LlamaConfig(
        vocab_size=key("vocab_size"),
        hidden_size=key("embedding_length"),
        num_hidden_layers=key("block_count"),
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        intermediate_size=key("feed_forward_length"),
        rms_norm_eps=1e-5,
        rope_theta=key("rope.freq_base"),
        tie_word_embeddings=True,
        max_position_embeddings=key("context_length"),
    )
    model = transformers.LlamaForCausalLM(config).eval()
    weights = {}
    for tensor in reader.tensors:
        weight = torch.from_numpy(np.array(gguf.quants.dequantize(tensor.data, tensor.tensor_type)))
        *block, part, kind = tensor.name.split(".")
        if part in ("attn_q", "attn_k"):  # llama.cpp keeps a head's two halves interleaved
            n = heads if part == "attn_q" else kv_heads
            weight = weight.view(n, -1, 2, weight.shape[1]).transpose(1, 2).reshape(weight.shape)
        weights[f"model.layers.{block[1]}.{NAMES[part]}.{kind}" if block else f"{NAMES[part]}.{kind}"] = weight
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert (missing, unexpected) == (["lm_head.weight"], [])
    return model


@contextmanager
def exact_angles(model: transformers.LlamaForCausalLM, frequencies: torch.dtype = torch.float64) -> Iterator[None]:
    """Cosines and sines of products in float64 inside the `with`, rounded once to the dtype of the model."""

    def angles(x: torch.Tensor, position_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        theta = 100_000.0 ** (-torch.arange(0, 64, 2, dtype=torch.float64) / 64)
        turned = position_ids[..., None].double() * theta.to(frequencies).double()
        both = torch.cat([turned, turned], -1)
        return both.cos().to(x.dtype), both.sin().to(x.dtype)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model.model.rotary_emb, "forward", angles)
        yield


@contextmanager
def in_float64(model: transformers.LlamaForCausalLM) -> Iterator[None]:
    """All of the model in float64 inside the `with`: weights, such angles, and norms, which are in float32 there
    whatever the model is in. Its weights come back unchanged."""

    def norm(self: LlamaRMSNorm, x: torch.Tensor) -> torch.Tensor:
        return self.weight * x * (x.square().mean(-1, keepdim=True) + self.variance_epsilon).rsqrt()

    with exact_angles(model.double()), pytest.MonkeyPatch.context() as patch:
        patch.setattr(LlamaRMSNorm, "forward", norm)
        try:
            yield
        finally:
            model.float()
