"""StarCoder2 (Lozhkov et al. 2024, arXiv:2402.19173): grouped queries, rotary positions, LayerNorm, biases."""

from typing import Any

from gnomon.checkpoints.hf.families.llama import ATTENTION, INV_FREQ, TWINS, width
from gnomon.checkpoints.hf.family import ACTIVATIONS, Family, activation_name, lines
from gnomon.checkpoints.hf.keys import LAYERS, Keys
from gnomon.checkpoints.hf.rope import ROTARY, read_rope, write_rope
from gnomon.checkpoints.hf.table import line, module
from gnomon.models import ModelConfig


def read(keys: Keys) -> ModelConfig:
    """One window for all layers; use_bias is of every linear layer."""
    keys.must("mlp_type", "default")
    keys.must("norm_type", "layer_norm")
    d_head, bias = width(keys), keys.get("use_bias", bool, True)
    return ModelConfig(
        vocab_size=keys.size("vocab_size"),
        d_model=keys.size("hidden_size"),
        n_layers=keys.size("num_hidden_layers", most=LAYERS),
        n_heads=keys.size("num_attention_heads"),
        n_kv_heads=keys.size("num_key_value_heads", default=2),
        d_head=d_head,
        d_ff=keys.size("intermediate_size"),
        position=read_rope(keys, d_head, ROTARY["starcoder2"]),
        max_positions=keys.size("max_position_embeddings"),
        window=keys.size("sliding_window", default=None),
        bias=bias,
        activation=keys.word("hidden_act", ACTIVATIONS, "gelu_pytorch_tanh"),
        norm_eps=keys.get("norm_epsilon", float, 1e-5),
        dropout=keys.get("residual_dropout", float, 0.0),
        init_std=keys.get("initializer_range", float, 0.018042),
        tied=keys.get("tie_word_embeddings", bool, True),
    )


def write(c: ModelConfig) -> dict[str, Any]:
    """As StarCoder2."""
    d_head = c.d_model // c.n_heads if c.d_head is None else c.d_head
    return {
        "architectures": ["Starcoder2ForCausalLM"],
        "model_type": "starcoder2",
        "vocab_size": c.vocab_size,
        "hidden_size": c.d_model,
        "intermediate_size": c.d_ff,
        "num_hidden_layers": c.n_layers,
        "num_attention_heads": c.n_heads,
        "num_key_value_heads": c.n_kv_heads,
        "head_dim": d_head,
        "hidden_act": activation_name(c.activation),
        "norm_epsilon": c.norm_eps,
        "use_bias": c.bias,
        "sliding_window": c.windows(1)[0],
        "attention_dropout": c.dropout,
        "residual_dropout": c.dropout,
        "embedding_dropout": c.dropout,
        "initializer_range": c.init_std,
        "tie_word_embeddings": c.tied,
        **write_rope(c.per_layer(1)[0], d_head, c.max_positions, ROTARY["starcoder2"]),
    }


FAMILY = Family(
    "starcoder2",
    read,
    write,
    lines(
        line("model.embed_tokens.weight", "input.tokens.weight"),
        ATTENTION,
        module("model.layers.*.input_layernorm", "stack.blocks.*.around_attention.norm"),
        module("model.layers.*.post_attention_layernorm", "stack.blocks.*.around_ffn.norm"),
        module("model.layers.*.mlp.c_fc", "stack.blocks.*.ffn.up"),
        module("model.layers.*.mlp.c_proj", "stack.blocks.*.ffn.down"),
        module("model.norm", "stack.norm"),
        line("lm_head.weight", "head.weight"),
    ),
    prefix="model.",
    twins=TWINS,
    harmless=(INV_FREQ,),
)

__all__ = ["FAMILY"]
