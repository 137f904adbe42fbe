"""Phi (Li et al. 2023, arXiv:2309.05463): both sublayers behind one norm, a part of each head turned."""

from typing import Any

from gnomon.checkpoints.hf.families.llama import INV_FREQ, TWINS, width
from gnomon.checkpoints.hf.family import ACTIVATIONS, Family, activation_name, lines
from gnomon.checkpoints.hf.keys import LAYERS, Keys
from gnomon.checkpoints.hf.rope import ROTARY, read_rope, write_rope
from gnomon.checkpoints.hf.table import line, module
from gnomon.models import ModelConfig


def read(keys: Keys) -> ModelConfig:
    """Biases everywhere, in the head too."""
    keys.must("qk_layernorm", False)
    d_head, n_heads = width(keys), keys.size("num_attention_heads")
    return ModelConfig(
        vocab_size=keys.size("vocab_size"),
        d_model=keys.size("hidden_size"),
        n_layers=keys.size("num_hidden_layers", most=LAYERS),
        n_heads=n_heads,
        n_kv_heads=keys.size("num_key_value_heads", default=None) or n_heads,
        d_head=d_head,
        d_ff=keys.size("intermediate_size"),
        position=read_rope(keys, d_head, ROTARY["phi"]),
        max_positions=keys.size("max_position_embeddings"),
        residual="one norm",
        head_bias=True,
        activation=keys.word("hidden_act", ACTIVATIONS, "gelu_new"),
        norm_eps=keys.get("layer_norm_eps", float, 1e-5),
        dropout=keys.get("resid_pdrop", float, 0.0),
        init_std=keys.get("initializer_range", float, 0.02),
        tied=keys.get("tie_word_embeddings", bool, False),
    )


def write(c: ModelConfig) -> dict[str, Any]:
    """As Phi; the rotary share is always said, because its code takes a half where it is not."""
    d_head = c.d_model // c.n_heads if c.d_head is None else c.d_head
    return {
        "architectures": ["PhiForCausalLM"],
        "model_type": "phi",
        "vocab_size": c.vocab_size,
        "hidden_size": c.d_model,
        "intermediate_size": c.d_ff,
        "num_hidden_layers": c.n_layers,
        "num_attention_heads": c.n_heads,
        "num_key_value_heads": c.n_kv_heads,
        "head_dim": d_head,
        "hidden_act": activation_name(c.activation, "gelu_new"),
        "layer_norm_eps": c.norm_eps,
        "resid_pdrop": c.dropout,
        "embd_pdrop": c.dropout,
        "attention_dropout": c.dropout,
        "initializer_range": c.init_std,
        "tie_word_embeddings": c.tied,
        "partial_rotary_factor": 1.0,
        **write_rope(c.per_layer(1)[0], d_head, c.max_positions, ROTARY["phi"]),
    }


_ATTENTION = (("q_proj", "q"), ("k_proj", "k"), ("v_proj", "v"), ("dense", "out"))

FAMILY = Family(
    "phi",
    read,
    write,
    lines(
        line("model.embed_tokens.weight", "input.tokens.weight"),
        *(module(f"model.layers.*.self_attn.{a}", f"stack.blocks.*.attention.{b}") for a, b in _ATTENTION),
        module("model.layers.*.input_layernorm", "stack.blocks.*.around_attention.norm"),
        module("model.layers.*.mlp.fc1", "stack.blocks.*.ffn.up"),
        module("model.layers.*.mlp.fc2", "stack.blocks.*.ffn.down"),
        module("model.final_layernorm", "stack.norm"),
        module("lm_head", "head"),
    ),
    prefix="model.",
    twins=TWINS,
    harmless=(INV_FREQ,),
)

__all__ = ["FAMILY"]
