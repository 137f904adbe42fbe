"""OLMo 2: norms behind each sublayer and over all queries and keys; with windows it is OLMo 3."""

from collections.abc import Mapping
from typing import Any

from gnomon.checkpoints.gguf.family import LLAMA, PLAIN, Family
from gnomon.checkpoints.gguf.keys import Keys
from gnomon.checkpoints.gguf.rope import rope
from gnomon.models import ModelConfig

WINDOW, PATTERN = "attention.sliding_window", "attention.sliding_window_pattern"
FIXED = {**LLAMA, **PLAIN, "placement": "branch", "qk_norm": "joint"}


def read(keys: Keys, found: Mapping[str, Any]) -> dict[str, Any]:
    """Layers with a window turn by the plain base; the scaling is for the others."""
    window, sliding = keys.get(WINDOW, int, 0), keys.list(PATTERN)
    if not window or not any(sliding):
        return {}
    far = found["position"]
    near = rope(far.options.get("base", 10000.0), found["d_head"], found["d_head"])
    return {
        "position": tuple(near if on else far for on in sliding),
        "window": [window if on else None for on in sliding],
    }


def write(c: ModelConfig) -> dict[str, Any]:
    """The same."""
    windows = c.windows(c.n_layers)
    if not any(windows):
        return {}
    return {WINDOW: next(filter(None, windows)), PATTERN: [window is not None for window in windows]}


FAMILY = Family("olmo2", "rope", FIXED, read, write, windows=True, tied=False)

__all__ = ["FAMILY"]
