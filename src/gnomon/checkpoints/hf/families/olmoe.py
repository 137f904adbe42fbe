"""OLMoE (Muennighoff et al. 2024, arXiv:2409.02060): a Llama with experts, and norms over all queries and all keys."""

from typing import Any

from gnomon.blocks import Experts
from gnomon.checkpoints.hf.families.llama import read, width, write
from gnomon.checkpoints.hf.families.mixtral import COUNT, check_experts, experts_family, experts_of
from gnomon.checkpoints.hf.families.qwen2_moe import NAMES
from gnomon.checkpoints.hf.keys import Keys
from gnomon.checkpoints.hf.rope import ROTARY
from gnomon.models import ModelConfig


def read_config(keys: Keys) -> ModelConfig:
    """attention_bias is of all four projections; the width of a head is not free, because its norms' is not."""
    keys.must("clip_qkv")
    d_head = width(keys)
    keys.must("head_dim", keys.size("hidden_size") // keys.size("num_attention_heads"), None)
    bias = keys.get("attention_bias", bool, False)
    top_k, normalised = keys.size("num_experts_per_tok", default=8), keys.get("norm_topk_prob", bool, False)
    return read(
        keys,
        ROTARY["olmoe"],
        d_head,
        qk_norm="joint",
        qkv_bias=bias,
        out_bias=bias,
        experts=Experts(keys.size(*COUNT, default=64), top_k, normalised=normalised),
    )


def write_config(c: ModelConfig) -> dict[str, Any]:
    """As OLMoE."""
    experts = experts_of(c)
    check_experts(c)
    return write(
        c,
        "olmoe",
        "OlmoeForCausalLM",
        ROTARY["olmoe"],
        attention_bias=bool(c.qkv_bias),
        num_experts=experts.n_experts,
        num_experts_per_tok=experts.top_k,
        norm_topk_prob=experts.normalised,
        intermediate_size=experts.d_ff,
    )


FAMILY = experts_family("olmoe", read_config, write_config, "mlp.gate", NAMES)

__all__ = ["FAMILY"]
