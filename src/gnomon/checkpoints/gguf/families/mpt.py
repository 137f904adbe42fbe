"""MPT: ALiBi without biases."""

from typing import Any

from gnomon.checkpoints.gguf.family import QKV, Family
from gnomon.models import ModelConfig


def write(c: ModelConfig) -> dict[str, Any]:
    """The published slopes, which BLOOM's files leave out."""
    return {"attention.max_alibi_bias": 8.0}


FAMILY = Family("mpt", "alibi", {"norm": "layernorm", "activation": "gelu"}, write=write, fused=QKV)

__all__ = ["FAMILY"]
