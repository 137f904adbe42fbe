"""SmolLM3: Llama in which every fourth layer has no position."""

from collections.abc import Mapping
from typing import Any

from gnomon.checkpoints.gguf.family import LLAMA, Family
from gnomon.checkpoints.gguf.keys import Keys
from gnomon.positions import NoPE, Spec

PERIOD = 4


def read(keys: Keys, found: Mapping[str, Any]) -> dict[str, Any]:
    """Which layers are turned is the family's."""
    turned = [(layer + 1) % PERIOD != 0 for layer in range(found["n_layers"])]
    return {"position": tuple(found["position"] if on else Spec(NoPE) for on in turned)}


FAMILY = Family("smollm3", "rope", LLAMA, read, rows="interleaved", still=True, rank=3)

__all__ = ["FAMILY"]
