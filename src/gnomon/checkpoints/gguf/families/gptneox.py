"""GPT-NeoX: a part of each head turns, attention and feed-forward may stand side by side, the head is not tied."""

from collections.abc import Mapping
from typing import Any

from gnomon.checkpoints.gguf.family import GPT, QKV, Family
from gnomon.checkpoints.gguf.keys import Keys
from gnomon.models import ModelConfig


def read(keys: Keys, found: Mapping[str, Any]) -> dict[str, Any]:
    """How the sublayers are wired."""
    return {"residual": "parallel" if keys.get("use_parallel_residual", bool, True) else "sequential"}


def write(c: ModelConfig) -> dict[str, Any]:
    """The same."""
    return {"use_parallel_residual": c.residual == "parallel"}


FAMILY = Family("gptneox", "rope", {**GPT, "activation": "gelu"}, read, write, fused=QKV, partial=True, tied=False)

__all__ = ["FAMILY"]
