"""BERT, and models of sentence vectors made of it: norms after each sublayer, learned positions, types of tokens."""

from collections.abc import Mapping
from typing import Any

from gnomon.checkpoints.gguf.family import GPT, Family
from gnomon.checkpoints.gguf.keys import Keys
from gnomon.checkpoints.gguf.pooling import ENCODER, read_pooling, write_pooling

FIXED = {**ENCODER, **GPT, "activation": "gelu", "placement": "post", "input_norm": "layernorm"}
NORMS = {"around_attention.norm": "attn_output_norm", "around_ffn.norm": "layer_output_norm"}


def read(keys: Keys, found: Mapping[str, Any]) -> dict[str, Any]:
    """How many types there are is said by their table."""
    return {**read_pooling(keys), "n_types": keys.tensors.get("token_types.weight", (0,))[0]}


FAMILY = Family("bert", "learned", FIXED, read, write_pooling, renamed=lambda names: NORMS)

__all__ = ["FAMILY"]
