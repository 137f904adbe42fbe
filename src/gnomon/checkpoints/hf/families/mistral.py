"""Mistral (Jiang et al. 2023, arXiv:2310.06825): Llama with a window in every layer."""

from typing import Any

from gnomon.checkpoints.hf.families.llama import read, relative, width, write
from gnomon.checkpoints.hf.keys import Keys
from gnomon.checkpoints.hf.rope import ROTARY
from gnomon.models import ModelConfig


def read_config(keys: Keys) -> ModelConfig:
    """One window for all layers; a config that leaves it out means the first Mistral's."""
    window = keys.size("sliding_window", default=None if "sliding_window" in keys.data else 4096)
    return read(keys, ROTARY["mistral"], width(keys), window=window)


def write_config(c: ModelConfig) -> dict[str, Any]:
    """As Mistral."""
    return write(c, "mistral", "MistralForCausalLM", ROTARY["mistral"], sliding_window=c.windows(1)[0])


FAMILY = relative("mistral", read_config, write_config)

__all__ = ["FAMILY"]
