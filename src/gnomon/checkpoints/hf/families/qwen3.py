"""Qwen3 (Yang et al. 2025, arXiv:2505.09388): RMSNorm on queries and keys."""

from typing import Any

from gnomon.checkpoints.hf.families.llama import read, relative, sliding_keys, width, windows_above, write
from gnomon.checkpoints.hf.keys import Keys
from gnomon.checkpoints.hf.rope import ROTARY
from gnomon.models import ModelConfig


def read_config(keys: Keys) -> ModelConfig:
    """A norm on q and k instead of biases."""
    bias = keys.get("attention_bias", bool, False)
    settings: dict[str, Any] = {"window": windows_above(keys), "qk_norm": True, "qkv_bias": bias, "out_bias": bias}
    return read(keys, ROTARY["qwen3"], width(keys, 128), **settings)


def write_config(c: ModelConfig) -> dict[str, Any]:
    """As Qwen3."""
    return write(c, "qwen3", "Qwen3ForCausalLM", ROTARY["qwen3"], attention_bias=bool(c.qkv_bias), **sliding_keys(c))


FAMILY = relative("qwen3", read_config, write_config)

__all__ = ["FAMILY"]
