"""BLOOM (Scao et al. 2022, arXiv:2211.05100): ALiBi in a causal decoder."""

from typing import Any

from gnomon.checkpoints.hf.family import Family, lines
from gnomon.checkpoints.hf.keys import LAYERS, Keys
from gnomon.checkpoints.hf.table import PerHead, line, module
from gnomon.models import ModelConfig
from gnomon.positions import get

_QKV = tuple(f"stack.blocks.*.attention.{name}" for name in "qkv")


def read_bloom(keys: Keys) -> ModelConfig:
    """Its GELU is the tanh form, whatever the config says; the token vectors are normed before the first block."""
    keys.must("apply_residual_connection_post_layernorm", False)
    d_model = keys.size("hidden_size", "n_embed")
    keys.must("n_inner", 4 * d_model, None)
    return ModelConfig(
        vocab_size=keys.size("vocab_size"),
        d_model=d_model,
        n_layers=keys.size("n_layer", "num_hidden_layers", most=LAYERS),
        n_heads=keys.size("n_head", "num_attention_heads"),
        position=get("alibi"),
        input_norm="layernorm",
        norm_eps=keys.get("layer_norm_epsilon", float, 1e-5),
        activation="gelu_tanh",
        dropout=keys.get("hidden_dropout", float, 0.0),
        init_std=keys.get("initializer_range", float, 0.02),
        tied=keys.get("tie_word_embeddings", bool, True),
    )


def write_bloom(c: ModelConfig) -> dict[str, Any]:
    """As BLOOM."""
    return {
        "architectures": ["BloomForCausalLM"],
        "model_type": "bloom",
        "vocab_size": c.vocab_size,
        "hidden_size": c.d_model,
        "n_layer": c.n_layers,
        "n_head": c.n_heads,
        "layer_norm_epsilon": c.norm_eps,
        "hidden_dropout": c.dropout,
        "attention_dropout": c.dropout,
        "initializer_range": c.init_std,
        "tie_word_embeddings": c.tied,
    }


FAMILY = Family(
    "bloom",
    read_bloom,
    write_bloom,
    lines(
        line("transformer.word_embeddings.weight", "input.tokens.weight"),
        module("transformer.word_embeddings_layernorm", "input.norm"),
        module("transformer.h.*.input_layernorm", "stack.blocks.*.around_attention.norm"),
        module("transformer.h.*.self_attention.query_key_value", *_QKV, transform=PerHead()),
        module("transformer.h.*.self_attention.dense", "stack.blocks.*.attention.out"),
        module("transformer.h.*.post_attention_layernorm", "stack.blocks.*.around_ffn.norm"),
        module("transformer.h.*.mlp.dense_h_to_4h", "stack.blocks.*.ffn.up"),
        module("transformer.h.*.mlp.dense_4h_to_h", "stack.blocks.*.ffn.down"),
        module("transformer.ln_f", "stack.norm"),
        line("lm_head.weight", "head.weight"),
    ),
    prefix="transformer.",
    twins={"lm_head.weight": "transformer.word_embeddings.weight"},
)

__all__ = ["FAMILY"]
