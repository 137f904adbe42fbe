"""Falcon: both sublayers side by side, behind one norm or one each, without biases but in the norms."""

from collections.abc import Collection, Mapping
from typing import Any

from gnomon.checkpoints.gguf.family import PLAIN, QKV, Family
from gnomon.checkpoints.gguf.keys import Keys
from gnomon.models import ModelConfig

FIXED = {**PLAIN, "norm": "layernorm", "activation": "gelu"}


def read(keys: Keys, found: Mapping[str, Any]) -> dict[str, Any]:
    """A second norm is attention's own."""
    return {"residual": "parallel" if "blk.0.attn_norm_2.weight" in keys.tensors else "one norm"}


def write(c: ModelConfig) -> dict[str, Any]:
    """Queries, then keys, then values."""
    return {"tensor_data_layout": "jploski"}


def renamed(names: Collection[str]) -> Mapping[str, str]:
    """Where there are two norms, the first name is that of the feed-forward's."""
    two = "stack.blocks.0.around_ffn.norm.weight" in names
    return {"around_attention.norm": "attn_norm_2", "around_ffn.norm": "attn_norm"} if two else {}


FAMILY = Family("falcon", "rope", FIXED, read, write, fused=QKV, renamed=renamed)

__all__ = ["FAMILY"]
