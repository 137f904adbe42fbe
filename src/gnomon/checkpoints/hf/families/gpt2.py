"""GPT-2 (Radford et al. 2019): learned positions, pre-norm, biases, projections kept as (in, out)."""

from typing import Any

from gnomon.checkpoints.hf.family import ACTIVATIONS, Family, activation_name, lines
from gnomon.checkpoints.hf.keys import LAYERS, Keys
from gnomon.checkpoints.hf.table import Columns, Transposed, line, module
from gnomon.models import ModelConfig
from gnomon.positions import get


def read(keys: Keys) -> ModelConfig:
    """n_inner left out means four times the width."""
    d_model = keys.size("n_embd")
    keys.must("scale_attn_weights", True)
    keys.must("scale_attn_by_inverse_layer_idx", False)
    keys.must("add_cross_attention", False)
    return ModelConfig(
        vocab_size=keys.size("vocab_size"),
        d_model=d_model,
        n_layers=keys.size("n_layer", most=LAYERS),
        n_heads=keys.size("n_head"),
        max_positions=keys.size("n_positions"),
        position=get("learned"),
        d_ff=keys.size("n_inner", default=None) or 4 * d_model,
        norm_eps=keys.get("layer_norm_epsilon", float, 1e-5),
        activation=keys.word("activation_function", ACTIVATIONS, "gelu_new"),
        dropout=keys.get("resid_pdrop", float, 0.1),
        init_std=keys.get("initializer_range", float, 0.02),
        tied=keys.get("tie_word_embeddings", bool, True),
    )


def write(c: ModelConfig) -> dict[str, Any]:
    """As GPT-2."""
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": c.vocab_size,
        "n_embd": c.d_model,
        "n_layer": c.n_layers,
        "n_head": c.n_heads,
        "n_positions": c.max_positions,
        "n_inner": c.d_ff,
        "activation_function": activation_name(c.activation, "gelu_new"),
        "layer_norm_epsilon": c.norm_eps,
        "resid_pdrop": c.dropout,
        "embd_pdrop": c.dropout,
        "attn_pdrop": c.dropout,
        "initializer_range": c.init_std,
        "tie_word_embeddings": c.tied,
    }


def _attention(name: str) -> str:
    return f"stack.blocks.*.attention.{name}"


FAMILY = Family(
    "gpt2",
    read,
    write,
    lines(
        line("transformer.wte.weight", "input.tokens.weight"),
        line("transformer.wpe.weight", "input.position.weight"),
        module("transformer.h.*.ln_1", "stack.blocks.*.around_attention.norm"),
        module("transformer.h.*.attn.c_attn", *map(_attention, "qkv"), transform=Columns()),
        module("transformer.h.*.attn.c_proj", _attention("out"), transform=Transposed()),
        module("transformer.h.*.ln_2", "stack.blocks.*.around_ffn.norm"),
        module("transformer.h.*.mlp.c_fc", "stack.blocks.*.ffn.up", transform=Transposed()),
        module("transformer.h.*.mlp.c_proj", "stack.blocks.*.ffn.down", transform=Transposed()),
        module("transformer.ln_f", "stack.norm"),
        line("lm_head.weight", "head.weight"),
    ),
    prefix="transformer.",
    twins={"lm_head.weight": "transformer.wte.weight"},
    rank=0,
    harmless=(r"transformer\.h\.\d+\.attn\.(bias|masked_bias)",),  # the causal mask, as a tensor
)

__all__ = ["FAMILY"]
