"""Qwen3-MoE: Qwen3 with experts, whose weights sum to 1."""

from collections.abc import Mapping
from typing import Any

from gnomon.checkpoints.gguf.experts import read_experts, write_experts
from gnomon.checkpoints.gguf.family import LLAMA, PLAIN, Family
from gnomon.checkpoints.gguf.keys import Keys
from gnomon.models import ModelConfig


def read(keys: Keys, found: Mapping[str, Any]) -> dict[str, Any]:
    """Experts."""
    return read_experts(keys, found, normalised=True)


def write(c: ModelConfig) -> dict[str, Any]:
    """The same."""
    return write_experts(c)


FAMILY = Family("qwen3moe", "rope", {**LLAMA, **PLAIN, "qk_norm": True}, read, write, widths=True)

__all__ = ["FAMILY"]
