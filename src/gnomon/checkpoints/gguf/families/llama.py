"""Llama, with biases or without, whose queries and keys stand in pairs of neighbours; with experts Mixtral."""

from collections.abc import Mapping
from typing import Any

from gnomon.checkpoints.gguf.experts import read_experts, write_experts
from gnomon.checkpoints.gguf.family import LLAMA, Family, window_of_all
from gnomon.checkpoints.gguf.keys import Keys
from gnomon.models import ModelConfig


def read(keys: Keys, found: Mapping[str, Any]) -> dict[str, Any]:
    """A window, and experts whose weights sum to 1."""
    return window_of_all(keys, found) | read_experts(keys, found, normalised=True)


def write(c: ModelConfig) -> dict[str, Any]:
    """The same."""
    return {} if c.mixture is None else write_experts(c, width=False)


FAMILY = Family("llama", "rope", LLAMA, read, write, rows="interleaved", rank=2)

__all__ = ["FAMILY"]
