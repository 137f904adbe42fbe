"""Qwen2-MoE (Yang et al. 2024, arXiv:2407.10671, section 2.2.2): Qwen2 with experts and one that every token takes."""

from typing import Any

from gnomon.blocks import Experts
from gnomon.checkpoints.hf.families.llama import read, sliding_keys, width, windows, write
from gnomon.checkpoints.hf.families.mixtral import COUNT, check_experts, experts_family, experts_of
from gnomon.checkpoints.hf.keys import LAYERS, SEQUENCE, Keys
from gnomon.checkpoints.hf.rope import ROTARY
from gnomon.errors import BadInput
from gnomon.models import ModelConfig
from gnomon.models.model_settings import Window

NAMES = ("gate_proj", "up_proj", "down_proj")


def read_config(keys: Keys) -> ModelConfig:
    """The shared network has a gate."""
    experts = is_sparse(keys, top_k=4, shared=keys.size("shared_expert_intermediate_size"), shared_gate=True)
    bias = keys.get("qkv_bias", bool, True)
    return read(
        keys, ROTARY["qwen2_moe"], width(keys), window=_windows(keys), qkv_bias=bias, out_bias=False, experts=experts
    )


def is_sparse(keys: Keys, top_k: int, **more: Any) -> Experts:
    """The experts of a config of this kind: layers without any are listed, or all but every decoder_sparse_step-th."""
    n_layers, every = keys.size("num_hidden_layers", most=LAYERS), keys.size("decoder_sparse_step", default=1)
    listed: list[Any] = keys.get("mlp_only_layers", SEQUENCE, None) or []
    if any(type(layer) is not int for layer in listed):
        raise BadInput(f"{keys.file}: mlp_only_layers are numbers of layers, got {listed}")
    return Experts(
        keys.size(*COUNT),
        keys.size("num_experts_per_tok", default=top_k),
        keys.size("moe_intermediate_size"),
        normalised=keys.get("norm_topk_prob", bool, False),
        dense_layers=tuple(n for n in range(n_layers) if n in listed or (n + 1) % every),
        **more,
    )


def _windows(keys: Keys) -> Window:
    """A window in every other layer below max_window_layers."""
    first, n_layers = keys.get("max_window_layers", int, 28), keys.size("num_hidden_layers", most=LAYERS)
    return windows(keys, [n % 2 == 0 and n < first for n in range(n_layers)])


def experts_keys(c: ModelConfig) -> dict[str, Any]:
    """The keys of experts of this kind."""
    experts = experts_of(c)
    return {
        "num_experts": experts.n_experts,
        "num_experts_per_tok": experts.top_k,
        "moe_intermediate_size": experts.d_ff,
        "norm_topk_prob": experts.normalised,
        "decoder_sparse_step": 1,
        "mlp_only_layers": list(experts.dense_layers),
    }


def write_config(c: ModelConfig) -> dict[str, Any]:
    """As Qwen2-MoE."""
    experts = experts_of(c)
    check_experts(c, **{name: getattr(experts, name) for name in ("dense_layers", "shared")}, shared_gate=True)
    return write(
        c,
        "qwen2_moe",
        "Qwen2MoeForCausalLM",
        ROTARY["qwen2_moe"],
        **sliding_keys(c),
        **experts_keys(c),
        shared_expert_intermediate_size=experts.shared,
        qkv_bias=bool(c.qkv_bias),
    )


FAMILY = experts_family("qwen2_moe", read_config, write_config, "mlp.gate", NAMES)

__all__ = ["FAMILY"]
