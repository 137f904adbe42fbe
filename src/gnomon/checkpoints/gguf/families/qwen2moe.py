"""Qwen2-MoE: Qwen2 with experts, and a network that every token takes behind a gate."""

from collections.abc import Mapping
from typing import Any

from gnomon.checkpoints.gguf.experts import SHARED, read_experts, write_experts
from gnomon.checkpoints.gguf.family import LLAMA, PLAIN, Family
from gnomon.checkpoints.gguf.keys import Keys
from gnomon.models import ModelConfig


def read(keys: Keys, found: Mapping[str, Any]) -> dict[str, Any]:
    """The weights of the experts that a token takes do not sum to 1."""
    return read_experts(keys, found, normalised=False, shared=keys.get(SHARED, int), shared_gate=True)


def write(c: ModelConfig) -> dict[str, Any]:
    """The same."""
    return write_experts(c) | {SHARED: 0 if c.mixture is None else c.mixture.shared}


FAMILY = Family("qwen2moe", "rope", {**LLAMA, **PLAIN, "qkv_bias": True}, read, write)

__all__ = ["FAMILY"]
