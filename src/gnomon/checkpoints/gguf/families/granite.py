"""Granite: Llama with a scale on token vectors, scores, what sublayers add, and logits."""

from collections.abc import Mapping
from typing import Any

from gnomon.checkpoints.gguf.family import LLAMA, Family
from gnomon.checkpoints.gguf.keys import Keys
from gnomon.errors import BadValue
from gnomon.models import ModelConfig

NAMES = {"embed": "embedding", "residual": "residual"}


def read(keys: Keys, found: Mapping[str, Any]) -> dict[str, Any]:
    """logit_scale divides; a scale of scores that is left out, or 0, is the usual one."""
    scale = keys.get("attention.scale", float, 0.0)
    scales = {f"{name}_scale": keys.get(f"{key}_scale", float, 1.0) for name, key in NAMES.items()}
    scales["head_scale"] = 1 / keys.get("logit_scale", float)
    return scales | ({"attention_scale": scale} if scale else {})


def write(c: ModelConfig) -> dict[str, Any]:
    """The same."""
    scale = 1.0 if c.embed_scale is None else c.embed_scale
    if not isinstance(scale, float):
        raise BadValue(f"embed_scale = {scale}: the family has a number there")
    return {
        "attention.scale": c.attention_scale,
        "embedding_scale": scale,
        "residual_scale": c.residual_scale,
        "logit_scale": 1 / c.head_scale,
    }


FAMILY = Family("granite", "rope", LLAMA, read, write, rows="interleaved", rank=3)

__all__ = ["FAMILY"]
