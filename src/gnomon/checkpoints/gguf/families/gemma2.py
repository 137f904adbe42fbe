"""Gemma 2: norms on both sides, capped scores and logits, and a window in every other layer, the first of them."""

from collections.abc import Mapping
from typing import Any

from gnomon.checkpoints.gguf.families.gemma import FIXED as GEMMA
from gnomon.checkpoints.gguf.family import Family
from gnomon.checkpoints.gguf.keys import Keys
from gnomon.models import ModelConfig

LAYERS_27B = 46  # the one model whose scores are scaled by the width that its heads would have without d_head
ATTENTION, LOGITS = "attn_logit_softcapping", "final_logit_softcapping"
FIXED = {**GEMMA, "placement": "sandwich"}


def read(keys: Keys, found: Mapping[str, Any]) -> dict[str, Any]:
    """Layers with a window, from the first on."""
    n, window = found["n_layers"], keys.get("attention.sliding_window", int)
    settings: dict[str, Any] = {"window": [None if layer % 2 else window for layer in range(n)]}
    settings |= {"softcap": keys.get(ATTENTION, float, 50.0), "head_softcap": keys.get(LOGITS, float, 30.0)}
    return settings | ({"attention_scale": (found["d_model"] / found["n_heads"]) ** -0.5} if n == LAYERS_27B else {})


def write(c: ModelConfig) -> dict[str, Any]:
    """The same."""
    window = next((window for window in c.windows(c.n_layers) if window), None)
    told = {"attention.sliding_window": window, ATTENTION: c.softcap, LOGITS: c.head_softcap}
    return {key: value for key, value in told.items() if value is not None}


FAMILY = Family("gemma2", "rope", FIXED, read, write, widths=True, windows=True, own_head=False)

__all__ = ["FAMILY"]
