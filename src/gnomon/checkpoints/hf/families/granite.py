"""Granite 3 (IBM 2024): Llama with a multiplier of token vectors, scores, what sublayers add, and logits."""

from typing import Any

from gnomon.checkpoints.hf.families.llama import read as read_llama
from gnomon.checkpoints.hf.families.llama import relative, width
from gnomon.checkpoints.hf.families.llama import write as write_llama
from gnomon.checkpoints.hf.keys import Keys
from gnomon.checkpoints.hf.rope import ROTARY
from gnomon.errors import BadInput
from gnomon.models import ModelConfig


def read(keys: Keys) -> ModelConfig:
    """Scores are not divided by the root of a head's width but multiplied; logits are divided."""
    bias, divided = keys.get("attention_bias", bool, False), keys.get("logits_scaling", float, 1.0)
    if divided == 0:
        raise BadInput(f"{keys.file}: logits are divided by logits_scaling, which is 0")
    return read_llama(
        keys,
        ROTARY["granite"],
        width(keys),
        bias=keys.get("mlp_bias", bool, False),
        qkv_bias=bias,
        out_bias=bias,
        embed_scale=keys.get("embedding_multiplier", float, 1.0),
        head_scale=1 / divided,
        attention_scale=keys.get("attention_multiplier", float, 1.0),
        residual_scale=keys.get("residual_multiplier", float, 1.0),
    )


def write(c: ModelConfig) -> dict[str, Any]:
    """As Granite."""
    scale = c.d_model**0.5 if isinstance(c.embed_scale, str) else 1.0 if c.embed_scale is None else c.embed_scale
    return write_llama(
        c,
        "granite",
        "GraniteForCausalLM",
        ROTARY["granite"],
        attention_bias=bool(c.qkv_bias),
        mlp_bias=c.bias,
        embedding_multiplier=scale,
        attention_multiplier=c.attention_scale,
        residual_multiplier=c.residual_scale,
        logits_scaling=inverse(c.head_scale),
    )


def inverse(x: float) -> float:
    """The shortest y with 1 / y == x, where there is one."""
    y = 1 / x if x else 0.0
    rounded = (round(y, digits) for digits in range(16))
    return next((z for z in rounded if z and 1 / z == x), y)


FAMILY = relative("granite", read, write, rank=2)

__all__ = ["FAMILY"]
