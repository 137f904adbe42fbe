"""GPT-NeoX and Pythia (Black et al. 2022, arXiv:2204.06745): partial rotary positions, sublayers side by side."""

from typing import Any

from gnomon.checkpoints.hf.family import ACTIVATIONS, Family, activation_name, lines
from gnomon.checkpoints.hf.keys import LAYERS, Keys
from gnomon.checkpoints.hf.rope import ROTARY, read_rope, write_rope
from gnomon.checkpoints.hf.table import PerHead, line, module
from gnomon.models import ModelConfig


def read(keys: Keys) -> ModelConfig:
    """The rotated share of a head is rotary_pct in older files and partial_rotary_factor in newer ones."""
    d_model, n_heads = keys.size("hidden_size"), keys.size("num_attention_heads")
    bias = keys.get("attention_bias", bool, True)
    parallel = keys.get("use_parallel_residual", bool, True)
    return ModelConfig(
        vocab_size=keys.size("vocab_size"),
        d_model=d_model,
        n_layers=keys.size("num_hidden_layers", most=LAYERS),
        n_heads=n_heads,
        d_ff=keys.size("intermediate_size"),
        position=read_rope(keys, d_model // n_heads, ROTARY["gpt_neox"]),
        max_positions=keys.size("max_position_embeddings"),
        qkv_bias=bias,
        out_bias=bias,
        norm_eps=keys.get("layer_norm_eps", float, 1e-5),
        activation=keys.word("hidden_act", ACTIVATIONS, "gelu"),
        residual="parallel" if parallel else "sequential",
        dropout=keys.get("hidden_dropout", float, 0.0),
        init_std=keys.get("initializer_range", float, 0.02),
        tied=keys.get("tie_word_embeddings", bool, False),
    )


def write(c: ModelConfig) -> dict[str, Any]:
    """As GPT-NeoX, the rotary share under both of its names."""
    rotary = write_rope(c.per_layer(1)[0], c.d_model // c.n_heads, c.max_positions, ROTARY["gpt_neox"])
    share = rotary.setdefault("partial_rotary_factor", 1.0)
    return {
        "architectures": ["GPTNeoXForCausalLM"],
        "model_type": "gpt_neox",
        "vocab_size": c.vocab_size,
        "hidden_size": c.d_model,
        "num_hidden_layers": c.n_layers,
        "num_attention_heads": c.n_heads,
        "intermediate_size": c.d_ff,
        "attention_bias": bool(c.qkv_bias),
        "layer_norm_eps": c.norm_eps,
        "hidden_act": activation_name(c.activation),
        "use_parallel_residual": c.residual == "parallel",
        "hidden_dropout": c.dropout,
        "attention_dropout": c.dropout,
        "initializer_range": c.init_std,
        "tie_word_embeddings": c.tied,
        "rotary_pct": share,
        "rotary_emb_base": rotary["rope_theta"],
        **rotary,
    }


_QKV = tuple(f"stack.blocks.*.attention.{name}" for name in "qkv")

FAMILY = Family(
    "gpt_neox",
    read,
    write,
    lines(
        line("gpt_neox.embed_in.weight", "input.tokens.weight"),
        module("gpt_neox.layers.*.input_layernorm", "stack.blocks.*.around_attention.norm"),
        module("gpt_neox.layers.*.attention.query_key_value", *_QKV, transform=PerHead()),
        module("gpt_neox.layers.*.attention.dense", "stack.blocks.*.attention.out"),
        module("gpt_neox.layers.*.post_attention_layernorm", "stack.blocks.*.around_ffn.norm"),
        module("gpt_neox.layers.*.mlp.dense_h_to_4h", "stack.blocks.*.ffn.up"),
        module("gpt_neox.layers.*.mlp.dense_4h_to_h", "stack.blocks.*.ffn.down"),
        module("gpt_neox.final_layer_norm", "stack.norm"),
        line("embed_out.weight", "head.weight"),
    ),
    prefix="gpt_neox.",
    twins={"embed_out.weight": "gpt_neox.embed_in.weight"},
    harmless=(r"gpt_neox\.layers\.\d+\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)",),
    renamed=(("lm_head.", "embed_out."),),
)

__all__ = ["FAMILY"]
