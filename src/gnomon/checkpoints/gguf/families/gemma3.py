"""Gemma 3: layers with a window and a base of their own, and every sixth that sees all; norms on both sides."""

from collections.abc import Mapping
from typing import Any

from gnomon.checkpoints.gguf.family import PLAIN, Family
from gnomon.checkpoints.gguf.keys import Keys
from gnomon.checkpoints.gguf.rope import rope
from gnomon.models import ModelConfig

PERIOD, LOCAL_BASE = 6, 10000.0  # every sixth layer sees all; the base of the others
LAYERS_27B = 62  # the one model whose scores are scaled by the width that its heads would have without d_head
FIXED = {
    **PLAIN,
    "norm": "rmsnorm_plus_one",
    "activation": "gelu_tanh",
    "gated": True,
    "placement": "sandwich",
    "qk_norm": True,
    "embed_scale": "rounded sqrt",
}


def read(keys: Keys, found: Mapping[str, Any]) -> dict[str, Any]:
    """Layers with a window and a base of their own, and every sixth that sees all."""
    n, d_head, window = found["n_layers"], found["d_head"], keys.get("attention.sliding_window", int)
    period = keys.get("attention.sliding_window_pattern", int, PERIOD)
    local = rope(keys.get("rope.freq_base_swa", float, LOCAL_BASE), d_head, d_head)
    seeing_all = [(layer + 1) % period == 0 for layer in range(n)]
    keys.must("final_logit_softcapping", 0.0)
    settings = {
        "position": tuple(found["position"] if every else local for every in seeing_all),
        "window": [None if every else window for every in seeing_all],
    }
    return settings | ({"attention_scale": (found["d_model"] / found["n_heads"]) ** -0.5} if n == LAYERS_27B else {})


def write(c: ModelConfig) -> dict[str, Any]:
    """The window, and the base within it."""
    window = next((window for window in c.windows(c.n_layers) if window), None)
    return {} if window is None else {"attention.sliding_window": window, "rope.freq_base_swa": LOCAL_BASE}


FAMILY = Family("gemma3", "rope", FIXED, read, write, widths=True, windows=True)

__all__ = ["FAMILY"]
