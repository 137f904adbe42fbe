"""gpt-oss: experts with biases, sinks, and a window in every other layer, the first of them.

llama.cpp rounds the ends of its YaRN, which the published model does not; what is loaded here does not either."""

from collections.abc import Collection, Mapping
from typing import Any

from gnomon.checkpoints.gguf.experts import read_experts, write_experts
from gnomon.checkpoints.gguf.family import Family
from gnomon.checkpoints.gguf.keys import Keys
from gnomon.checkpoints.gguf.rope import with_truncation
from gnomon.models import ModelConfig

FIXED = {
    "norm": "rmsnorm",
    "activation": "clamped_swish",
    "gated": True,
    "bias": True,
    "qkv_bias": True,
    "out_bias": True,
    "sinks": True,
}


def read(keys: Keys, found: Mapping[str, Any]) -> dict[str, Any]:
    """Layers with a window, from the first on."""
    window = keys.get("attention.sliding_window", int)
    windows = [None if n % 2 else window for n in range(found["n_layers"])]
    position = with_truncation(found["position"], False)
    return {"window": windows, "position": position, **read_experts(keys, found, normalised=True, router_bias=True)}


def write(c: ModelConfig) -> dict[str, Any]:
    """The same."""
    window = next((window for window in c.windows(c.n_layers) if window), None)
    return write_experts(c) | ({} if window is None else {"attention.sliding_window": window})


def renamed(names: Collection[str]) -> Mapping[str, str]:
    """The norm before the experts is called after what comes before it."""
    return {"around_ffn.norm": "post_attention_norm"}


FAMILY = Family(
    "gpt-oss", "rope", FIXED, read, write, widths=True, windows=True, tied=False, truncates=False, renamed=renamed
)

__all__ = ["FAMILY"]
