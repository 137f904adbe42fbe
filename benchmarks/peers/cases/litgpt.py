"""LitGPT's settings, one or two at a time, on small models drawn from one seed."""

from collections.abc import Mapping
from typing import Any

from litgpt import GPT, Config

from cases.drawn import Case, drawn
from gnomon.audit.adapters.litgpt import LitGPT

SIZES: Mapping[str, Any] = {
    "block_size": 64, "n_layer": 2, "n_embd": 64, "n_head": 4, "padded_vocab_size": 64, "rotary_percentage": 1.0,
    "parallel_residual": False, "intermediate_size": 64,
}  # fmt: skip
LLAMA: Mapping[str, Any] = {"norm_class_name": "RMSNorm", "mlp_class_name": "LLaMAMLP", "bias": False}
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_seq_len": 16}
YARN = {"factor": 4.0, "beta_fast": 4, "beta_slow": 1, "original_max_seq_len": 16}
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "gpt-neox": {"rotary_percentage": 0.25, "parallel_residual": True},
    "shared norm": {"parallel_residual": True, "shared_attention_norm": True},
    "llama": LLAMA,
    "interleaved": {**LLAMA, "rope_interleave": True},
    "half of the channels": {**LLAMA, "rotary_percentage": 0.5},
    "interleaved, half of the channels": {**LLAMA, "rope_interleave": True, "rotary_percentage": 0.5},
    "condensed": {**LLAMA, "rope_condense_ratio": 4},
    "linear": {**LLAMA, "rope_adjustments": {"factor": 4.0}},
    "llama3": {**LLAMA, "rope_adjustments": LLAMA3},
    "yarn": {**LLAMA, "rope_adjustments": YARN},
    "yarn, mscale": {**LLAMA, "rope_adjustments": {**YARN, "mscale": 1.0, "mscale_all_dim": 1.0}},
    "2 groups": {**LLAMA, "n_query_groups": 2},
    "1 group": {**LLAMA, "n_query_groups": 1},
    "qk norm": {**LLAMA, "norm_qk": True},
    "qk norm, olmo2": {
        **LLAMA, "norm_qk": True, "norm_qk_type": "olmo2", "norm_1": False, "norm_2": False,
        "post_attention_norm": True, "post_mlp_norm": True,
    },
    "window 4": {**LLAMA, "sliding_window_size": 4},
    "window 16": {**LLAMA, "sliding_window_size": 16},
    "window 4 in every other layer": {**LLAMA, "sliding_window_size": 4, "sliding_window_indices": [1, 0]},
    "score cap (gemma 2)": {
        **LLAMA, "mlp_class_name": "GemmaMLP", "attention_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
        "scale_embeddings": True, "post_attention_norm": True, "post_mlp_norm": True,
    },
    "score cap, window 16": {**LLAMA, "attention_logit_softcapping": 50.0, "sliding_window_size": 16},
    "gemma 3": {
        **LLAMA, "mlp_class_name": "GemmaMLP", "scale_embeddings": True, "norm_qk": True, "rope_base": 1000000,
        "rope_local_base_freq": 10000, "rope_indices": [1, 0], "sliding_window_size": 16,
        "sliding_window_indices": [1, 0], "post_attention_norm": True, "post_mlp_norm": True,
    },
    "experts": {**LLAMA, "mlp_class_name": "LLaMAMoE", "n_expert": 4, "n_expert_per_token": 2,
                "moe_intermediate_size": 32},
    "latent attention": {
        **LLAMA,
        "latent_attention": {
            "q_lora_rank": 32, "kv_lora_rank": 32, "qk_rope_head_dim": 16, "qk_nope_head_dim": 16, "v_head_dim": 16,
        },
    },
    "latent attention, yarn": {
        **LLAMA,
        "rope_adjustments": {**YARN, "mscale": 1.0, "mscale_all_dim": 1.0},
        "latent_attention": {
            "q_lora_rank": 32, "kv_lora_rank": 32, "qk_rope_head_dim": 16, "qk_nope_head_dim": 16, "v_head_dim": 16,
        },
    },
}  # fmt: skip


def _case(settings: Mapping[str, Any], trimmed: bool) -> Case:
    return lambda: LitGPT(drawn(lambda: GPT(Config(**{**SIZES, **settings}))), trimmed=trimmed)


CASES: Mapping[str, Case] = {
    **{name: _case(settings, True) for name, settings in SETTINGS.items()},
    **{
        f"{name}, whole buffer": _case(SETTINGS[name], False)
        for name in ("llama", "window 16", "score cap (gemma 2)", "latent attention")
    },
}
