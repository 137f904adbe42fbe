"""Encoders in GGUF: a vector for each text, by the keys `ARCH.pooling_type` and `ARCH.attention.causal`.

Converters leave every head out, so a file holds a pooled encoder without a layer after pooling. The file of llama.cpp
does not say whether the vector is brought to length 1 (its programs do that by themselves); a key of Gnomon's own does.
"""

from typing import Any

from gnomon.checkpoints.gguf.keys import Keys
from gnomon.models import ModelConfig

ENCODER = {"architecture": "encoder-only", "causal": False, "head": "pooled", "tied": True}
NONE, MEAN, FIRST = 0, 1, 2  # llama.cpp's numbers; 0: the vectors of the tokens are what is wanted
POOLING, UNIT = "pooling_type", "gnomon.unit"


def read_pooling(keys: Keys) -> dict[str, Any]:
    """A file without a pooling is read as BERT itself, whose vector is the first token's."""
    keys.must(POOLING, NONE, MEAN, FIRST)
    pooling = "mean" if keys.get(POOLING, int, NONE) == MEAN else "first"
    return {"pooling": pooling, "unit": keys.get(UNIT, bool, False)}


def write_pooling(c: ModelConfig) -> dict[str, Any]:
    """The same as keys."""
    told: dict[str, Any] = {"attention.causal": False, POOLING: MEAN if c.pooling == "mean" else FIRST}
    return told | ({UNIT: True} if c.unit else {})


__all__ = ["ENCODER", "read_pooling", "write_pooling"]
