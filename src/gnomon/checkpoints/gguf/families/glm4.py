"""GLM 4: norms on both sides of each sublayer, half of each head turned, gate and up in one tensor."""

from collections.abc import Mapping
from typing import Any

from gnomon.checkpoints.gguf.family import GATE_UP, LLAMA, Family
from gnomon.checkpoints.gguf.keys import Keys

FIXED = {**LLAMA, "bias": False, "out_bias": False, "placement": "sandwich"}


def read(keys: Keys, found: Mapping[str, Any]) -> dict[str, Any]:
    """No keys of its own."""
    return {}


FAMILY = Family("glm4", "rope", FIXED, read, rows="interleaved", fused=GATE_UP, partial=True, widths=True)

__all__ = ["FAMILY"]
