"""StableLM: Llama with LayerNorm, a part of each head turned, and both sublayers behind one norm or not."""

from collections.abc import Mapping
from typing import Any

from gnomon.checkpoints.gguf.family import Family
from gnomon.checkpoints.gguf.keys import Keys
from gnomon.models import ModelConfig

FIXED = {"norm": "layernorm", "activation": "silu", "gated": True, "bias": False, "out_bias": False}


def read(keys: Keys, found: Mapping[str, Any]) -> dict[str, Any]:
    """A block without a second norm has both sublayers behind the first, whatever the key says."""
    keys.get("use_parallel_residual", bool, True)
    return {"residual": "sequential" if "blk.0.ffn_norm.weight" in keys.tensors else "one norm"}


def write(c: ModelConfig) -> dict[str, Any]:
    """How the sublayers are wired."""
    return {"use_parallel_residual": c.residual == "one norm"}


FAMILY = Family("stablelm", "rope", FIXED, read, write, partial=True, tied=False)

__all__ = ["FAMILY"]
