"""GLM-4 (GLM Team 2024, arXiv:2406.12793): norms on both sides, half of each head turned."""

from typing import Any

from gnomon.checkpoints.hf.families.llama import ATTENTION, ENDS, INV_FREQ, TWINS
from gnomon.checkpoints.hf.families.llama import read as read_llama
from gnomon.checkpoints.hf.families.llama import write as write_llama
from gnomon.checkpoints.hf.family import Family, lines
from gnomon.checkpoints.hf.keys import Keys
from gnomon.checkpoints.hf.rope import ROTARY
from gnomon.checkpoints.hf.table import Stacked, line
from gnomon.models import ModelConfig

_GATE_UP = tuple(f"stack.blocks.*.ffn.{name}.weight" for name in ("gate", "up"))


def read(keys: Keys) -> ModelConfig:
    """attention_bias is of queries, keys and values."""
    return read_llama(
        keys,
        ROTARY["glm4"],
        keys.size("head_dim", default=128),
        placement="sandwich",
        n_kv_heads=keys.size("num_key_value_heads", default=2),
        qkv_bias=keys.get("attention_bias", bool, True),
    )


def write(c: ModelConfig) -> dict[str, Any]:
    """As GLM-4; the rotary share is always said, because its code takes a half where it is not."""
    return {
        "partial_rotary_factor": 1.0,
        **write_llama(c, "glm4", "Glm4ForCausalLM", ROTARY["glm4"], attention_bias=bool(c.qkv_bias)),
    }


FAMILY = Family(
    "glm4",
    read,
    write,
    lines(
        ENDS,
        ATTENTION,
        line("model.layers.*.mlp.gate_up_proj.weight", *_GATE_UP, transform=Stacked()),
        line("model.layers.*.mlp.down_proj.weight", "stack.blocks.*.ffn.down.weight"),
        line("model.layers.*.input_layernorm.weight", "stack.blocks.*.around_attention.norm.weight"),
        line("model.layers.*.post_self_attn_layernorm.weight", "stack.blocks.*.around_attention.norm_after.weight"),
        line("model.layers.*.post_attention_layernorm.weight", "stack.blocks.*.around_ffn.norm.weight"),
        line("model.layers.*.post_mlp_layernorm.weight", "stack.blocks.*.around_ffn.norm_after.weight"),
    ),
    prefix="model.",
    twins=TWINS,
    harmless=(INV_FREQ,),
)
__all__ = ["FAMILY"]
