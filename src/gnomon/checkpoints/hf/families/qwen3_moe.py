"""Qwen3-MoE (Yang et al. 2025, arXiv:2505.09388): Qwen3 with experts and none that every token takes."""

from typing import Any

from gnomon.checkpoints.hf.families.llama import read, width, write
from gnomon.checkpoints.hf.families.mixtral import check_experts, experts_family, experts_of
from gnomon.checkpoints.hf.families.qwen2_moe import NAMES, experts_keys, is_sparse
from gnomon.checkpoints.hf.keys import Keys
from gnomon.checkpoints.hf.rope import ROTARY
from gnomon.models import ModelConfig


def read_config(keys: Keys) -> ModelConfig:
    """One window for all layers, where it is switched on."""
    bias, used = keys.get("attention_bias", bool, False), keys.get("use_sliding_window", bool, False)
    keys.get("sliding_window", int, None)
    return read(
        keys,
        ROTARY["qwen3_moe"],
        width(keys),
        experts=is_sparse(keys, top_k=8),
        qk_norm=True,
        qkv_bias=bias,
        out_bias=bias,
        window=keys.size("sliding_window", default=4096) if used else None,
    )


def write_config(c: ModelConfig) -> dict[str, Any]:
    """As Qwen3-MoE."""
    check_experts(c, dense_layers=experts_of(c).dense_layers)
    window = c.windows(1)[0]
    return write(
        c,
        "qwen3_moe",
        "Qwen3MoeForCausalLM",
        ROTARY["qwen3_moe"],
        **experts_keys(c),
        attention_bias=bool(c.qkv_bias),
        sliding_window=window,
        use_sliding_window=window is not None,
    )


FAMILY = experts_family("qwen3_moe", read_config, write_config, "mlp.gate", NAMES)

__all__ = ["FAMILY"]
