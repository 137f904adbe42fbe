"""T5, mT5 and UMT5: an encoder and a decoder with relative biases; scores are not divided.

A stack has one table of biases, or one for each layer (UMT5), which llama.cpp knows by the tensors.

Two kinds are computed: 1.0, with ReLU and the table of tokens as its head, and 1.1, gated, with a head of its own.
"""

import re
from collections.abc import Mapping
from typing import Any

from gnomon.checkpoints.gguf.family import PLAIN, Family
from gnomon.checkpoints.gguf.keys import Keys
from gnomon.errors import BadInput, BadValue
from gnomon.models import ModelConfig
from gnomon.positions import get
from gnomon.positions.t5 import tables

BUCKETS, DISTANCE = "attention.relative_buckets_count", 128  # the file does not say the distance
FIXED = {**PLAIN, "norm": "rmsnorm", "attention_scale": 1.0}
OUT = {"attention.out": "attn_o"}


def read_stack(keys: Keys, found: Mapping[str, Any]) -> dict[str, Any]:
    """What an encoder and a decoder have. llama.cpp knows a gate by its tensor, and the activation by the gate."""
    if keys.get("attention.layer_norm_epsilon", float, found["norm_eps"]) != found["norm_eps"]:  # converters write both
        raise BadInput(f"{keys.path}: its two keys of a norm's epsilon say different things")
    gated = "enc.blk.0.ffn_gate.weight" in keys.tensors
    table = get("t5", n_buckets=keys.get(BUCKETS, int), max_distance=DISTANCE)
    own = sum(re.fullmatch(r"(enc|dec)\.blk\.[1-9]\d*\.attn_rel_b\.weight", name) is not None for name in keys.tensors)
    deepest = max(found["n_layers"], keys.get("decoder_block_count", int, 0))
    return {
        "gated": gated,
        "activation": "gelu_tanh" if gated else "relu",
        "position": tables(table, deepest) if own else table,
    }


def write_stack(c: ModelConfig) -> dict[str, Any]:
    """The same as keys."""
    specs = c.per_layer(max(c.n_layers, c.depth))
    if specs[0].name != "t5":
        raise BadValue(f"position = {specs[0].name}: the family has T5's biases")
    if 1 < len(set(specs)) < len(specs):
        raise BadValue("position: some layers share a table of biases; the family has one for all, or one for each")
    return {BUCKETS: specs[0].options.get("n_buckets", 32)}


def read(keys: Keys, found: Mapping[str, Any]) -> dict[str, Any]:
    """What a tied head reads is scaled."""
    stack, n_layers, scaled = read_stack(keys, found), found["n_layers"], found["tied"]
    if not scaled and not stack["gated"]:
        raise BadInput(
            f"{keys.path} has a head of its own and no gates: it does not say whether the head's input is scaled, as "
            "in T5 1.0. Take the model from its Hugging Face folder"
        )
    return {
        **stack,
        "n_decoder_layers": keys.get("decoder_block_count", int, n_layers),
        "head_scale": found["d_model"] ** -0.5 if scaled else 1.0,
    }


def write(c: ModelConfig) -> dict[str, Any]:
    """The same as keys."""
    return {**write_stack(c), "decoder_block_count": c.depth}


FAMILY = Family(
    "t5",
    "t5",
    {**FIXED, "architecture": "encoder-decoder"},
    read,
    write,
    widths=True,
    renamed=lambda names: OUT,
    stacks={"encoder": "enc.", "decoder": "dec."},
)

__all__ = ["FAMILY"]
