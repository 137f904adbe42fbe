"""ERNIE 4.5 (Baidu 2025), its dense models: Llama whose neighbouring channels turn together."""

from typing import Any

from gnomon.checkpoints.hf.families.llama import read as read_llama
from gnomon.checkpoints.hf.families.llama import relative
from gnomon.checkpoints.hf.families.llama import write as write_llama
from gnomon.checkpoints.hf.keys import Keys
from gnomon.checkpoints.hf.rope import ROTARY
from gnomon.models import ModelConfig


def read(keys: Keys) -> ModelConfig:
    """use_bias is of every linear layer."""
    n_heads = keys.size("num_attention_heads")
    width = (
        keys.size("head_dim", default=None if "head_dim" in keys.data else 128) or keys.size("hidden_size") // n_heads
    )
    shared = None if "num_key_value_heads" in keys.data else 2
    return read_llama(
        keys,
        ROTARY["ernie4_5"],
        width,
        n_kv_heads=keys.size("num_key_value_heads", default=shared) or n_heads,
        bias=keys.get("use_bias", bool, False),
        tied=keys.get("tie_word_embeddings", bool, True),
    )


def write(c: ModelConfig) -> dict[str, Any]:
    """As ERNIE 4.5."""
    return write_llama(c, "ernie4_5", "Ernie4_5ForCausalLM", ROTARY["ernie4_5"], use_bias=c.bias)


FAMILY = relative("ernie4_5", read, write)

__all__ = ["FAMILY"]
