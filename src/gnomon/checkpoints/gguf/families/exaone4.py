"""EXAONE 4: norms behind each sublayer and of each head; layers that see all where others do not have no position."""

from collections.abc import Mapping
from typing import Any

from gnomon.checkpoints.gguf.families.olmo2 import PATTERN, WINDOW, write
from gnomon.checkpoints.gguf.family import LLAMA, PLAIN, Family
from gnomon.checkpoints.gguf.keys import Keys
from gnomon.positions import NoPE, Spec

PERIOD = 4  # every fourth layer sees all
FIXED = {**LLAMA, **PLAIN, "placement": "branch", "qk_norm": True}


def read(keys: Keys, found: Mapping[str, Any]) -> dict[str, Any]:
    """The smaller models have no window."""
    window, n = keys.get(WINDOW, int, 0), found["n_layers"]
    if not window:
        return {}
    sliding = keys.list(PATTERN) or [(layer + 1) % PERIOD != 0 for layer in range(n)]
    return {
        "position": tuple(found["position"] if on else Spec(NoPE) for on in sliding),
        "window": [window if on else None for on in sliding],
    }


FAMILY = Family("exaone4", "rope", FIXED, read, write, widths=True, windows=True, still=True)

__all__ = ["FAMILY"]
