"""BLOOM (Scao et al. 2022, arXiv:2211.05100) and MPT (MosaicML 2023): ALiBi in causal decoders."""

from typing import Any

from gnomon.checkpoints.hf.family import Family, lines
from gnomon.checkpoints.hf.keys import LAYERS, Keys
from gnomon.checkpoints.hf.table import PerHead, Stacked, line, module
from gnomon.errors import BadValue
from gnomon.models import ModelConfig
from gnomon.positions import get

_QKV = tuple(f"stack.blocks.*.attention.{name}" for name in "qkv")


def read_bloom(keys: Keys) -> ModelConfig:
    """Its GELU is the tanh form, whatever the config says; the token vectors are normed before the first block."""
    keys.must("apply_residual_connection_post_layernorm", False)
    d_model = keys.size("hidden_size", "n_embed")
    keys.must("n_inner", 4 * d_model, None)
    return ModelConfig(
        vocab_size=keys.size("vocab_size"), d_model=d_model,
        n_layers=keys.size("n_layer", "num_hidden_layers", most=LAYERS),
        n_heads=keys.size("n_head", "num_attention_heads"), position=get("alibi"), input_norm="layernorm",
        norm_eps=keys.get("layer_norm_epsilon", float, 1e-5), activation="gelu_tanh",
        dropout=keys.get("hidden_dropout", float, 0.0), init_std=keys.get("initializer_range", float, 0.02),
        tied=keys.get("tie_word_embeddings", bool, True),
    )  # fmt: skip


def write_bloom(c: ModelConfig) -> dict[str, Any]:
    """As BLOOM."""
    return {
        "architectures": ["BloomForCausalLM"], "model_type": "bloom", "vocab_size": c.vocab_size,
        "hidden_size": c.d_model, "n_layer": c.n_layers, "n_head": c.n_heads, "layer_norm_epsilon": c.norm_eps,
        "hidden_dropout": c.dropout, "attention_dropout": c.dropout, "initializer_range": c.init_std,
        "tie_word_embeddings": c.tied,
    }  # fmt: skip


BLOOM = Family(
    "bloom", read_bloom, write_bloom,
    lines(
        line("transformer.word_embeddings.weight", "input.tokens.weight"),
        module("transformer.word_embeddings_layernorm", "input.norm"),
        module("transformer.h.*.input_layernorm", "stack.blocks.*.around_attention.norm"),
        module("transformer.h.*.self_attention.query_key_value", *_QKV, how=PerHead()),
        module("transformer.h.*.self_attention.dense", "stack.blocks.*.attention.out"),
        module("transformer.h.*.post_attention_layernorm", "stack.blocks.*.around_ffn.norm"),
        module("transformer.h.*.mlp.dense_h_to_4h", "stack.blocks.*.ffn.up"),
        module("transformer.h.*.mlp.dense_4h_to_h", "stack.blocks.*.ffn.down"),
        module("transformer.ln_f", "stack.norm"),
        line("lm_head.weight", "head.weight"),
    ),
    prefix="transformer.", twins={"lm_head.weight": "transformer.word_embeddings.weight"},
)  # fmt: skip


def read_mpt(keys: Keys) -> ModelConfig:
    """No bias anywhere; only its ALiBi models have a meaning here, since Hugging Face's code knows no others."""
    d_model, attention = keys.size("d_model"), keys.part("attn_config")
    keys.must("no_bias", True)
    keys.must("logit_scale")
    keys.must("norm_type", "low_precision_layernorm")
    scale = None
    if attention is not None:
        attention.must("alibi", True)
        attention.must("alibi_bias_max", 8)
        attention.must("attn_type", "multihead_attention")
        attention.must("clip_qkv")
        attention.must("prefix_lm", False)
        attention.must("qk_ln", False)
        attention.must("attn_uses_sequence_id", False)
        scale = attention.get("softmax_scale", float, None)
        attention.finish("mpt", "attn_config")
    return ModelConfig(
        vocab_size=keys.size("vocab_size"), d_model=d_model, n_layers=keys.size("n_layers", most=LAYERS),
        n_heads=keys.size("n_heads"), d_ff=keys.size("expansion_ratio", default=4) * d_model, position=get("alibi"),
        max_positions=keys.size("max_seq_len", default=2048), norm="layernorm_no_bias", bias=False,
        attention_scale=scale,
        norm_eps=keys.get("layer_norm_epsilon", float, 1e-5), dropout=keys.get("resid_pdrop", float, 0.0),
        init_std=keys.get("initializer_range", float, 0.02), tied=keys.get("tie_word_embeddings", bool, True),
    )  # fmt: skip


def write_mpt(c: ModelConfig) -> dict[str, Any]:
    """As MPT."""
    if c.d_ff not in (None, 4 * c.d_model):
        raise BadValue(
            f"d_ff = {c.d_ff}: that library's MPT is 4 * d_model = {4 * c.d_model} wide, whatever its config says"
        )
    return {
        "architectures": ["MptForCausalLM"], "model_type": "mpt", "vocab_size": c.vocab_size, "d_model": c.d_model,
        "n_layers": c.n_layers, "n_heads": c.n_heads, "expansion_ratio": 4,
        "max_seq_len": c.max_positions or 2048, "layer_norm_epsilon": c.norm_eps, "resid_pdrop": c.dropout,
        "emb_pdrop": c.dropout, "no_bias": True, "initializer_range": c.init_std, "tie_word_embeddings": c.tied,
        "attn_config": {"alibi": True, "softmax_scale": c.attention_scale},
    }  # fmt: skip


MPT = Family(
    "mpt", read_mpt, write_mpt,
    lines(
        line("transformer.wte.weight", "input.tokens.weight"),
        line("transformer.blocks.*.norm_1.weight", "stack.blocks.*.around_attention.norm.weight"),
        line("transformer.blocks.*.attn.Wqkv.weight", *(f"{name}.weight" for name in _QKV), how=Stacked()),
        line("transformer.blocks.*.attn.out_proj.weight", "stack.blocks.*.attention.out.weight"),
        line("transformer.blocks.*.norm_2.weight", "stack.blocks.*.around_ffn.norm.weight"),
        line("transformer.blocks.*.ffn.up_proj.weight", "stack.blocks.*.ffn.up.weight"),
        line("transformer.blocks.*.ffn.down_proj.weight", "stack.blocks.*.ffn.down.weight"),
        line("transformer.norm_f.weight", "stack.norm.weight"),
        line("lm_head.weight", "head.weight"),
    ),
    prefix="transformer.", twins={"lm_head.weight": "transformer.wte.weight"},
)  # fmt: skip

__all__ = ["BLOOM", "MPT"]
