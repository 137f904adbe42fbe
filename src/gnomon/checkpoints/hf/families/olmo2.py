"""OLMo 2 (OLMo Team 2025, arXiv:2501.00656): norms over what is added, over all queries and all keys."""

from typing import Any

from gnomon.checkpoints.hf.families.llama import ATTENTION, ENDS, FEED_FORWARD, INV_FREQ, TWINS, width
from gnomon.checkpoints.hf.families.llama import read as read_llama
from gnomon.checkpoints.hf.families.llama import write as write_llama
from gnomon.checkpoints.hf.family import Family, lines
from gnomon.checkpoints.hf.keys import Keys
from gnomon.checkpoints.hf.rope import ROTARY
from gnomon.checkpoints.hf.table import line
from gnomon.models import ModelConfig


def read(keys: Keys) -> ModelConfig:
    """attention_bias is of all four projections."""
    bias, rotary = keys.get("attention_bias", bool, False), ROTARY["olmo2"]
    keys.must("clip_qkv")
    return read_llama(keys, rotary, width(keys), placement="branch", qk_norm="joint", qkv_bias=bias, out_bias=bias)


def write(c: ModelConfig) -> dict[str, Any]:
    """As OLMo 2."""
    return write_llama(c, "olmo2", "Olmo2ForCausalLM", ROTARY["olmo2"], attention_bias=bool(c.qkv_bias))


def norms_behind(name: str, read: Any, write: Any) -> Family:
    """A family with norms behind each sublayer, and Llama's names otherwise."""
    table = lines(
        ENDS,
        ATTENTION,
        FEED_FORWARD,
        line("model.layers.*.post_attention_layernorm.weight", "stack.blocks.*.around_attention.norm_after.weight"),
        line("model.layers.*.post_feedforward_layernorm.weight", "stack.blocks.*.around_ffn.norm_after.weight"),
    )
    return Family(name, read, write, table, prefix="model.", twins=TWINS, harmless=(INV_FREQ,))


FAMILY = norms_behind("olmo2", read, write)

__all__ = ["FAMILY"]
