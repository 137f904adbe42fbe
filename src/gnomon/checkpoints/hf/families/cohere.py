"""Cohere's Command R (2024): both sublayers behind one norm without biases, scaled logits of a tied head."""

from typing import Any

from gnomon.checkpoints.hf.families.llama import ATTENTION, ENDS, FEED_FORWARD, INV_FREQ, TWINS, width
from gnomon.checkpoints.hf.families.llama import read as read_llama
from gnomon.checkpoints.hf.families.llama import write as write_llama
from gnomon.checkpoints.hf.family import Family, lines
from gnomon.checkpoints.hf.keys import Keys
from gnomon.checkpoints.hf.rope import ROTARY
from gnomon.checkpoints.hf.table import line
from gnomon.models import ModelConfig


def read(keys: Keys) -> ModelConfig:
    """attention_bias is of all four projections."""
    keys.must("use_qk_norm", False)
    bias = keys.get("attention_bias", bool, False)
    return read_llama(
        keys,
        ROTARY["cohere"],
        width(keys),
        eps="layer_norm_eps",
        norm="layernorm_no_bias",
        residual="one norm",
        qkv_bias=bias,
        out_bias=bias,
        head_scale=keys.get("logit_scale", float, 0.0625),
        tied=keys.get("tie_word_embeddings", bool, True),
    )


def write(c: ModelConfig) -> dict[str, Any]:
    """As Cohere."""
    config = write_llama(
        c,
        "cohere",
        "CohereForCausalLM",
        ROTARY["cohere"],
        attention_bias=bool(c.qkv_bias),
        logit_scale=c.head_scale,
        layer_norm_eps=c.norm_eps,
    )
    del config["rms_norm_eps"]
    return config


def family(name: str, read: Any, write: Any) -> Family:
    """A family with one norm for both sublayers, and Llama's names otherwise."""
    norm = line("model.layers.*.input_layernorm.weight", "stack.blocks.*.around_attention.norm.weight")
    table = lines(ENDS, ATTENTION, FEED_FORWARD, norm)
    return Family(name, read, write, table, prefix="model.", twins=TWINS, harmless=(INV_FREQ,))


FAMILY = family("cohere", read, write)

__all__ = ["FAMILY"]
