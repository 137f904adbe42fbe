"""Gemma (Gemma Team 2024, arXiv:2403.08295): Llama with token vectors times the root of the width, norms around 0."""

from typing import Any

from gnomon.checkpoints.hf.families.llama import relative, sizes, width
from gnomon.checkpoints.hf.families.llama import write as write_llama
from gnomon.checkpoints.hf.family import ACTIVATIONS
from gnomon.checkpoints.hf.keys import Keys
from gnomon.checkpoints.hf.rope import ROTARY, read_rope
from gnomon.errors import BadValue
from gnomon.models import ModelConfig


def read(keys: Keys) -> ModelConfig:
    """Its "gelu" is the tanh form; attention_bias is of all four projections."""
    keys.must("use_bidirectional_attention", False)
    bias, d_head = keys.get("attention_bias", bool, False), width(keys, 256)
    word = keys.get("hidden_act", str, "gelu_pytorch_tanh")
    activation = keys.word("hidden_act", {**ACTIVATIONS, "gelu": "gelu_tanh"}, "gelu_pytorch_tanh")
    keys.must("hidden_activation", word, "gelu_pytorch_tanh" if word == "gelu" else None, None)
    return ModelConfig(
        **sizes(keys) | {"norm": "rmsnorm_plus_one"},
        d_head=d_head,
        position=read_rope(keys, d_head, ROTARY["gemma"]),
        activation=activation,
        qkv_bias=bias,
        out_bias=bias,
        embed_scale="rounded sqrt",
        tied=keys.get("tie_word_embeddings", bool, True),
    )


def write(c: ModelConfig) -> dict[str, Any]:
    """As Gemma, which has no word for the exact GELU."""
    if c.activation == "gelu":
        raise BadValue("activation = gelu: the family's code takes that word for the tanh form, gelu_tanh here")
    return write_llama(c, "gemma", "GemmaForCausalLM", ROTARY["gemma"], attention_bias=bool(c.qkv_bias))


FAMILY = relative("gemma", read, write)

__all__ = ["FAMILY"]
