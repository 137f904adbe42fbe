"""StableLM (Bellagente et al. 2024, arXiv:2402.17834): Llama with LayerNorm, a quarter of each head turned."""

from typing import Any

from gnomon.checkpoints.hf.families.llama import ATTENTION, FEED_FORWARD, INV_FREQ, TWINS
from gnomon.checkpoints.hf.families.llama import read as read_llama
from gnomon.checkpoints.hf.families.llama import write as write_llama
from gnomon.checkpoints.hf.family import Family, lines
from gnomon.checkpoints.hf.keys import Keys
from gnomon.checkpoints.hf.rope import ROTARY
from gnomon.checkpoints.hf.table import line, module
from gnomon.models import ModelConfig


def read(keys: Keys) -> ModelConfig:
    """use_parallel_residual has both sublayers behind one norm."""
    keys.must("qk_layernorm", False)
    d_head = keys.size("hidden_size") // keys.size("num_attention_heads")
    keys.must("head_dim", d_head, None)
    return read_llama(
        keys,
        ROTARY["stablelm"],
        d_head,
        eps="layer_norm_eps",
        norm="layernorm",
        n_kv_heads=keys.size("num_key_value_heads", default=32),
        qkv_bias=keys.get("use_qkv_bias", bool, False),
        residual="one norm" if keys.get("use_parallel_residual", bool, False) else "sequential",
        dropout=keys.get("hidden_dropout", float, 0.0),
    )


def write(c: ModelConfig) -> dict[str, Any]:
    """As StableLM; the rotary share is always said, because its code takes a quarter where it is not."""
    config = write_llama(
        c,
        "stablelm",
        "StableLmForCausalLM",
        ROTARY["stablelm"],
        use_qkv_bias=bool(c.qkv_bias),
        layer_norm_eps=c.norm_eps,
        use_parallel_residual=c.residual == "one norm",
        hidden_dropout=c.dropout,
    )
    del config["rms_norm_eps"], config["head_dim"]
    return {"partial_rotary_factor": 1.0, **config}


FAMILY = Family(
    "stablelm",
    read,
    write,
    lines(
        line("model.embed_tokens.weight", "input.tokens.weight"),
        ATTENTION,
        FEED_FORWARD,
        module("model.layers.*.input_layernorm", "stack.blocks.*.around_attention.norm"),
        module("model.layers.*.post_attention_layernorm", "stack.blocks.*.around_ffn.norm"),
        module("model.norm", "stack.norm"),
        line("lm_head.weight", "head.weight"),
    ),
    prefix="model.",
    twins=TWINS,
    harmless=(INV_FREQ,),
    rank=2,
)

__all__ = ["FAMILY"]
