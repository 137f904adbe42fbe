"""Qwen2 (Yang et al. 2024, arXiv:2407.10671): biases on queries, keys and values; a window in the upper layers."""

from typing import Any

from gnomon.checkpoints.hf.families.llama import read, relative, sliding_keys, width, windows_above, write
from gnomon.checkpoints.hf.keys import Keys
from gnomon.checkpoints.hf.rope import ROTARY
from gnomon.models import ModelConfig


def read_config(keys: Keys) -> ModelConfig:
    """Biases on q, k and v only."""
    keys.must("use_mrope", False)
    return read(keys, ROTARY["qwen2"], width(keys), window=windows_above(keys), qkv_bias=True, out_bias=False)


def write_config(c: ModelConfig) -> dict[str, Any]:
    """As Qwen2."""
    return write(c, "qwen2", "Qwen2ForCausalLM", ROTARY["qwen2"], **sliding_keys(c))


FAMILY = relative("qwen2", read_config, write_config)

__all__ = ["FAMILY"]
