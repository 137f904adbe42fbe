"""OLMoE: a Llama with experts, and norms over all queries and all keys."""

from collections.abc import Mapping
from typing import Any

from gnomon.checkpoints.gguf.experts import read_experts, write_experts
from gnomon.checkpoints.gguf.family import LLAMA, PLAIN, Family
from gnomon.checkpoints.gguf.keys import Keys
from gnomon.models import ModelConfig


def read(keys: Keys, found: Mapping[str, Any]) -> dict[str, Any]:
    """Experts."""
    return read_experts(keys, found, normalised=False)


def write(c: ModelConfig) -> dict[str, Any]:
    """The same."""
    return write_experts(c, width=False)


FAMILY = Family("olmoe", "rope", {**LLAMA, **PLAIN, "qk_norm": "joint"}, read, write, tied=False)

__all__ = ["FAMILY"]
