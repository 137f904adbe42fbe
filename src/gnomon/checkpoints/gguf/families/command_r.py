"""Cohere's Command R: both sublayers behind one norm without biases, scaled logits of a tied head."""

from collections.abc import Mapping
from typing import Any

from gnomon.checkpoints.gguf.family import PLAIN, Family
from gnomon.checkpoints.gguf.keys import Keys
from gnomon.models import ModelConfig

FIXED = {
    **PLAIN,
    "norm": "layernorm_no_bias",
    "activation": "silu",
    "gated": True,
    "residual": "one norm",
}


def read(keys: Keys, found: Mapping[str, Any]) -> dict[str, Any]:
    """logit_scale multiplies; 0 is none."""
    return {"head_scale": keys.get("logit_scale", float, 1.0) or 1.0}


def write(c: ModelConfig) -> dict[str, Any]:
    """The same; a scaling of positions is said to be none."""
    return {"logit_scale": c.head_scale, "rope.scaling.type": "none"}


FAMILY = Family("command-r", "rope", FIXED, read, write, rows="interleaved", own_head=False)

__all__ = ["FAMILY"]
