"""OPT (Zhang et al. 2022, arXiv:2205.01068): learned positions whose table begins with two rows nobody reads."""

from typing import Any

from gnomon.checkpoints.hf.family import ACTIVATIONS, Family, activation_name, lines
from gnomon.checkpoints.hf.keys import LAYERS, Keys
from gnomon.checkpoints.hf.table import line, module
from gnomon.models import ModelConfig
from gnomon.positions import get

OFFSET = 2


def read(keys: Keys) -> ModelConfig:
    """do_layer_norm_before = false is the one published size with norms after the sublayers."""
    d_model, bias = keys.size("hidden_size"), keys.get("enable_bias", bool, True)
    keys.must("word_embed_proj_dim", d_model, None)
    keys.must("layer_norm_elementwise_affine", True)
    keys.must("_remove_final_layer_norm", False)
    return ModelConfig(
        vocab_size=keys.size("vocab_size"),
        d_model=d_model,
        n_layers=keys.size("num_hidden_layers", most=LAYERS),
        n_heads=keys.size("num_attention_heads"),
        d_ff=keys.size("ffn_dim"),
        max_positions=keys.size("max_position_embeddings"),
        position=get("learned", offset=OFFSET),
        bias=bias,
        activation=keys.word("activation_function", ACTIVATIONS, "relu"),
        dropout=keys.get("dropout", float, 0.1),
        placement="pre" if keys.get("do_layer_norm_before", bool, True) else "post",
        init_std=keys.get("init_std", float, 0.02),
        tied=keys.get("tie_word_embeddings", bool, True),
    )


def write(c: ModelConfig) -> dict[str, Any]:
    """As OPT."""
    return {
        "architectures": ["OPTForCausalLM"],
        "model_type": "opt",
        "vocab_size": c.vocab_size,
        "hidden_size": c.d_model,
        "word_embed_proj_dim": c.d_model,
        "num_hidden_layers": c.n_layers,
        "num_attention_heads": c.n_heads,
        "ffn_dim": c.d_ff,
        "max_position_embeddings": c.max_positions,
        "enable_bias": c.bias,
        "activation_function": activation_name(c.activation),
        "do_layer_norm_before": c.placement == "pre",
        "dropout": c.dropout,
        "init_std": c.init_std,
        "tie_word_embeddings": c.tied,
    }


_LAYER = "model.decoder.layers.*"

FAMILY = Family(
    "opt",
    read,
    write,
    lines(
        line("model.decoder.embed_tokens.weight", "input.tokens.weight"),
        line("model.decoder.embed_positions.weight", "input.position.weight"),
        module(f"{_LAYER}.self_attn.q_proj", "stack.blocks.*.attention.q"),
        module(f"{_LAYER}.self_attn.k_proj", "stack.blocks.*.attention.k"),
        module(f"{_LAYER}.self_attn.v_proj", "stack.blocks.*.attention.v"),
        module(f"{_LAYER}.self_attn.out_proj", "stack.blocks.*.attention.out"),
        module(f"{_LAYER}.self_attn_layer_norm", "stack.blocks.*.around_attention.norm"),
        module(f"{_LAYER}.fc1", "stack.blocks.*.ffn.up"),
        module(f"{_LAYER}.fc2", "stack.blocks.*.ffn.down"),
        module(f"{_LAYER}.final_layer_norm", "stack.blocks.*.around_ffn.norm"),
        module("model.decoder.final_layer_norm", "stack.norm"),
        line("lm_head.weight", "head.weight"),
    ),
    prefix="model.",
    twins={"lm_head.weight": "model.decoder.embed_tokens.weight"},
)

__all__ = ["FAMILY"]
