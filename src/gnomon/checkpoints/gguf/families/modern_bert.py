"""ModernBERT: a gated encoder with norms before; every third layer sees all, the others a window on both sides."""

from collections.abc import Mapping
from typing import Any

from gnomon.checkpoints.gguf.family import GATE_UP, PLAIN, QKV, Family
from gnomon.checkpoints.gguf.keys import Keys
from gnomon.checkpoints.gguf.pooling import ENCODER, read_pooling, write_pooling
from gnomon.checkpoints.gguf.rope import rope
from gnomon.models import ModelConfig

PERIOD = 3  # every third layer sees all, the first of them the first
WINDOW, PATTERN, NEAR = "attention.sliding_window", "attention.sliding_window_pattern", "rope.freq_base_swa"
FIXED = {
    **ENCODER,
    **PLAIN,
    "norm": "layernorm_no_bias",
    "input_norm": "layernorm_no_bias",
    "first_norm": False,
    "activation": "gelu",
    "gated": True,
}


def read(keys: Keys, found: Mapping[str, Any]) -> dict[str, Any]:
    """The window is counted over both sides. Without a base of their own its layers turn as the others do."""
    window, period, far = keys.get(WINDOW, int, 0), keys.get(PATTERN, int, PERIOD), found["position"]
    near = rope(keys.get(NEAR, float, far.options.get("base", 10000.0)), found["d_head"], found["d_head"])
    if not window or period < 1:
        return read_pooling(keys)
    sliding = [layer % period > 0 for layer in range(found["n_layers"])]
    return {
        **read_pooling(keys),
        "position": tuple(near if on else far for on in sliding),
        "window": [window // 2 + 1 if on else None for on in sliding],
    }


def write(c: ModelConfig) -> dict[str, Any]:
    """The same as keys."""
    windows, specs = c.windows(c.n_layers), c.per_layer(c.n_layers)
    near = next((n for n, window in enumerate(windows) if window is not None), None)
    if near is None:
        return write_pooling(c)
    full = [n for n, window in enumerate(windows) if window is None]
    period = full[1] if len(full) > 1 else max(PERIOD, c.n_layers)
    base = float(specs[near].options.get("base", 10000.0))
    return {**write_pooling(c), WINDOW: 2 * ((windows[near] or 1) - 1), PATTERN: period, NEAR: base}


FAMILY = Family("modern-bert", "rope", FIXED, read, write, fused={**QKV, **GATE_UP}, windows=True)

__all__ = ["FAMILY"]
