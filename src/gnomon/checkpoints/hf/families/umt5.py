"""UMT5 (Chung et al. 2023, arXiv:2304.09151): T5 1.1 with a table of relative biases in every layer."""

from typing import Any

from gnomon.checkpoints.hf.families.t5 import read, relative, write
from gnomon.checkpoints.hf.keys import Keys
from gnomon.errors import BadValue
from gnomon.models import ModelConfig


def read_config(keys: Keys) -> ModelConfig:
    """Scaled where it was said to be tied, as T5."""
    scaled = keys.get("scale_decoder_outputs", bool, keys.get("tie_word_embeddings", bool, True))
    return read(keys, scaled, "gated-gelu", shared=False)


def write_config(c: ModelConfig) -> dict[str, Any]:
    """As UMT5."""
    if len(set(c.per_layer(c.depth))) < c.depth:
        raise BadValue("position: layers share a table of biases, and this family has one for each layer")
    return write(c, "umt5", "UMT5ForConditionalGeneration", tie_word_embeddings=c.head_scale != 1.0)


FAMILY = relative("umt5", read_config, write_config)

__all__ = ["FAMILY"]
