"""x-transformers with its options switched on, one or two at a time, on small models drawn from one seed."""

from collections.abc import Mapping
from typing import Any

from x_transformers import AutoregressiveWrapper, Decoder, Encoder, TransformerWrapper, XTransformer

from cases.drawn import Case, drawn

LAYERS: Mapping[str, Any] = {"dim": 32, "depth": 2, "heads": 4, "attn_dim_head": 16, "verbose": False}
VOCAB, LENGTH = 64, 64
#: options of TransformerWrapper; all others are those of its layers
OUTSIDE = {
    "use_abs_pos_emb", "scaled_sinu_pos_emb", "num_memory_tokens", "memory_tokens_interspersed_every", "tie_embedding",
    "emb_dim", "post_emb_norm", "l2norm_embed", "mixture_of_softmax", "sigsoftmax_logits", "ff_deep_embed",
    "emb_frac_gradient",
}  # fmt: skip
ROPE: Mapping[str, Any] = {"rotary_pos_emb": True}
NONE: Mapping[str, Any] = {"use_abs_pos_emb": False}

POSITIONS: Mapping[str, Mapping[str, Any]] = {
    "learned": {},
    "sinusoid": {"scaled_sinu_pos_emb": True},
    "none": NONE,
    "rope": ROPE,
    "rope, all channels": {**ROPE, "rotary_emb_dim": 16},
    "rope, interpolated": {**ROPE, "rotary_interpolation_factor": 4.0},
    "rope, base rescaled": {**ROPE, "rotary_base_rescale_factor": 4.0},
    "rope and learned": {**ROPE, "disable_abs_pos_emb": False},
    "polar": {"polar_pos_emb": True},
    "alibi": {"alibi_pos_bias": True},
    "alibi alone": {"alibi_pos_bias": True, **NONE},
    "alibi, 2 of 4 heads": {"alibi_pos_bias": True, "alibi_num_heads": 2, **NONE},
    "alibi and rope": {"alibi_pos_bias": True, **ROPE},
    "t5": {"rel_pos_bias": True},
    "t5 and rope": {"rel_pos_bias": True, **ROPE},
    "dynamic": {"dynamic_pos_bias": True, **NONE},
    "dynamic, log": {"dynamic_pos_bias": True, "dynamic_pos_bias_log_distance": True, **NONE},
}
CAUSAL_POSITIONS: Mapping[str, Mapping[str, Any]] = {
    "xpos": {"rotary_xpos": True},
    "cope": {"attn_use_cope": True, **NONE},
    "cope, soft": {"attn_use_cope": True, "attn_cope_soft_onehot_pos": True, **NONE},
    "cope, talking heads": {"attn_use_cope": True, "attn_cope_talking_heads": True, **NONE},
    "forgetting": {"attn_data_dependent_alibi": True, **NONE},
    "forgetting, per row": {
        "attn_data_dependent_alibi": True,
        "attn_data_dependent_alibi_per_row": True,
        "attn_data_dependent_alibi_per_row_dim_head": 4,
        **NONE,
    },
    "projected bias": {"attn_use_rel_proj_pos_bias": True, **NONE},
}
ATTENTION: Mapping[str, Mapping[str, Any]] = {
    "flash": {"attn_flash": True},
    "2 kv heads": {"attn_kv_heads": 2},
    "1 kv head": {"attn_one_kv_head": True},
    "window": {"attn_max_attend_past": 3},
    "flash, window": {"attn_flash": True, "attn_max_attend_past": 3},
    "qk norm": {"attn_qk_norm": True},
    "qk norm, scaled": {"attn_qk_norm": True, "attn_qk_norm_dim_scale": True},
    "qk rmsnorm": {"attn_qk_rmsnorm": True},
    "value rmsnorm, 2 kv heads": {"attn_value_rmsnorm": True, "attn_kv_heads": 2},
    "sink": {"attn_head_learned_sink": True},
    "zero key": {"attn_add_zero_kv": True},
    "2 memory keys": {"attn_num_mem_kv": 2},
    "talking heads": {"attn_pre_talking_heads": True, "attn_post_talking_heads": True},
    "sparse": {"attn_sparse_topk": 3},
    "hard": {"attn_hard": True},
    "sigmoid": {"attn_sigmoid": True},
    "gumbel": {"attn_gumbel_softmax": True},
    "softclamp": {"attn_softclamp_logits": True},
    "cog": {"attn_cog_signed": True},
    "laser": {"attn_laser": True},
    "l2 distance": {"attn_l2_distance": True},
    "gates": {"attn_gate_values": True, "attn_output_gate": True},
    "head gates": {"attn_gate_value_heads": True, "attn_head_scale": True},
    "attention on attention": {"attn_on_attn": True},
    "orthogonal values": {"attn_orthog_projected_values": True},
    "orthogonal values, per head": {"attn_orthog_projected_values_per_head": True},
    "latent keys": {"attn_use_latent_kv": True, "attn_dim_latent_kv": 16},
    "latent, decoupled rope": {
        "attn_use_latent_kv": True, "attn_dim_latent_kv": 16, "attn_use_latent_q": True, "attn_dim_latent_q": 16,
        "attn_latent_rope_subheads": 2,
    },
    "polar, 2 kv heads": {"polar_pos_emb": True, "rotary_pos_emb": False, "attn_kv_heads": 2},
    "alibi, flash": {"alibi_pos_bias": True, "attn_flash": True, "rotary_pos_emb": False, **NONE},
    "alibi, memory keys": {"alibi_pos_bias": True, "attn_num_mem_kv": 2, "rotary_pos_emb": False, **NONE},
    "alibi, zero key": {"alibi_pos_bias": True, "attn_add_zero_kv": True, "rotary_pos_emb": False, **NONE},
    "t5, window": {"rel_pos_bias": True, "attn_max_attend_past": 3, "rotary_pos_emb": False},
    "projected bias, memory keys": {
        "attn_use_rel_proj_pos_bias": True, "attn_num_mem_kv": 2, "rotary_pos_emb": False, **NONE,
    },
    "cope, memory keys": {"attn_use_cope": True, "attn_num_mem_kv": 2, "rotary_pos_emb": False, **NONE},
}  # fmt: skip
LAYER_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "shifted tokens": {"shift_tokens": 1},
    "residual attention": {"residual_attn": True},
    "value residual": {"add_value_residual": True},
    "2 streams": {"num_residual_streams": 2},
    "layers integrated": {"integrate_layers": True},
    "aggregated residuals": {"attn_aggregated_residuals": True, "attn_aggregated_residual_kwargs": {"lora_rank": 8}},
    "gated residual": {"gate_residual": True},
    "orthogonal residual": {"orthog_residual": True},
    "mv split residual": {"mv_split_residual": True},
    "scaled residual": {"scale_residual": True},
    "input reinjected": {"reinject_input": True, "learned_reinject_input_gate": True},
    "unet": {"unet_skips": True},
    "macaron": {"macaron": True},
    "sandwich norm": {"sandwich_norm": True},
    "post-norm": {"pre_norm": False},
    "both norms": {"pre_and_post_norm": True},
    "scalenorm": {"use_scalenorm": True},
    "rmsnorm": {"use_rmsnorm": True},
    "simple rmsnorm": {"use_simple_rmsnorm": True},
    "dynamic tanh": {"use_dynamic_tanh": True},
    "derf": {"use_derf": True},
    "layer scale": {"use_layerscale": True, "layerscale_init_value": 1.0},
    "layers tied": {"weight_tie_layers": True},
    "output clamped": {"softclamp_output": True},
    "glu": {"ff_glu": True, "ff_swish": True},
    "only attention": {"only_attn": True},
}
AROUND: Mapping[str, Mapping[str, Any]] = {
    "tied": {"tie_embedding": True},
    "factorised": {"emb_dim": 16},
    "tied and factorised": {"tie_embedding": True, "emb_dim": 16},
    "norm after embedding": {"post_emb_norm": True},
    "l2norm": {"l2norm_embed": True, "rotary_pos_emb": False},
    "l2norm, sinusoid": {"l2norm_embed": True, "scaled_sinu_pos_emb": True, "rotary_pos_emb": False},
    "mixture of softmax": {"mixture_of_softmax": True},
    "sigsoftmax": {"sigsoftmax_logits": True},
    "deep embedding": {"ff_deep_embed": True},
    "less gradient": {"emb_frac_gradient": 0.1},
    "2 memory tokens": {"num_memory_tokens": 2},
    "memory tokens every 4": {"num_memory_tokens": 2, "memory_tokens_interspersed_every": 4},
    "learned, 2 memory tokens": {"num_memory_tokens": 2, "rotary_pos_emb": False},
}


def _net(layers: type, **options: Any) -> TransformerWrapper:
    outside = {name: value for name, value in options.items() if name in OUTSIDE}
    inside = {name: value for name, value in options.items() if name not in OUTSIDE}
    return TransformerWrapper(
        num_tokens=VOCAB, max_seq_len=LENGTH, attn_layers=layers(**{**LAYERS, **inside}), **outside
    )


def _decoder(**options: Any) -> Case:
    return lambda: AutoregressiveWrapper(drawn(lambda: _net(Decoder, **options)))


def _encoder(**options: Any) -> Case:
    return lambda: drawn(lambda: _net(Encoder, **options))


def _pair(**options: Any) -> Case:
    sizes = {"dim": 32, "enc_num_tokens": VOCAB, "enc_max_seq_len": LENGTH, "enc_depth": 2, "enc_heads": 4,
             "dec_num_tokens": VOCAB, "dec_max_seq_len": LENGTH, "dec_depth": 2, "dec_heads": 4,
             "enc_attn_dim_head": 16, "dec_attn_dim_head": 16, "enc_verbose": False, "dec_verbose": False}  # fmt: skip
    return lambda: drawn(lambda: XTransformer(**{**sizes, **options}))


CASES: Mapping[str, Case] = {
    **{f"decoder: {name}": _decoder(**options) for name, options in {**POSITIONS, **CAUSAL_POSITIONS}.items()},
    **{
        f"decoder, rope: {name}": _decoder(**{**ROPE, **options})
        for name, options in {**ATTENTION, **LAYER_OPTIONS, **AROUND}.items()
    },
    "decoder: selective": _decoder(attn_selective=True, **ROPE),
    **{f"encoder: {name}": _encoder(**options) for name, options in POSITIONS.items() if name != "none"},
    **{
        f"encoder, rope: {name}": _encoder(**ROPE, **options)
        for name, options in {
            **{name: ATTENTION[name] for name in ("flash", "2 kv heads", "window", "zero key", "2 memory keys")},
            **{name: LAYER_OPTIONS[name] for name in ("shifted tokens", "2 streams", "value residual")},
            **{name: LAYER_OPTIONS[name] for name in ("orthogonal residual", "mv split residual")},
            "2 memory tokens": AROUND["2 memory tokens"],
        }.items()
    },
    "encoder-decoder: learned": _pair(),
    "encoder-decoder: rope": _pair(enc_rotary_pos_emb=True, dec_rotary_pos_emb=True),
    "encoder-decoder: t5": _pair(enc_rel_pos_bias=True, dec_rel_pos_bias=True),
    "encoder-decoder: alibi": _pair(enc_alibi_pos_bias=True, dec_alibi_pos_bias=True),
    "encoder-decoder: tied": _pair(tie_token_emb=True),
    "encoder-decoder: shifted tokens": _pair(dec_shift_tokens=1),
}
