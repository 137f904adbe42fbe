"""GPT-BigCode (Ben Allal et al. 2023, arXiv:2301.03988): StarCoder, GPT-2 with one key for all queries."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from gnomon.checkpoints.hf.family import ACTIVATIONS, Family, activation_name, lines
from gnomon.checkpoints.hf.keys import LAYERS, Keys
from gnomon.checkpoints.hf.table import PerHead, Shape, Stacked, line, module
from gnomon.models import ModelConfig
from gnomon.positions import get


class Fused(PerHead):
    """Queries above the one key and the one value; where each head has its own, head by head."""

    def split(self, theirs: Tensor, ours: Sequence[Shape], config: ModelConfig) -> Sequence[Tensor]:
        """As the number of key/value heads says."""
        return (Stacked if config.n_kv_heads == 1 else PerHead).split(self, theirs, ours, config)

    def join(self, ours: Sequence[Tensor], config: ModelConfig) -> Tensor:
        """As the number of key/value heads says."""
        return (Stacked if config.n_kv_heads == 1 else PerHead).join(self, ours, config)


def read(keys: Keys) -> ModelConfig:
    """multi_query is one key/value head, and otherwise there is one for each query head."""
    keys.must("add_cross_attention", False)
    d_model, n_heads = keys.size("n_embd"), keys.size("n_head")
    shared = keys.get("multi_query", bool, True)
    keys.must("num_key_value_heads", 1 if shared else n_heads, None)
    return ModelConfig(
        vocab_size=keys.size("vocab_size"),
        d_model=d_model,
        n_layers=keys.size("n_layer", most=LAYERS),
        n_heads=n_heads,
        n_kv_heads=1 if shared else None,
        position=get("learned"),
        max_positions=keys.size("n_positions", default=1024),
        d_ff=keys.size("n_inner", default=None) or 4 * d_model,
        norm_eps=keys.get("layer_norm_epsilon", float, 1e-5),
        activation=keys.word("activation_function", ACTIVATIONS, "gelu_pytorch_tanh"),
        attention_scale=None if keys.get("scale_attn_weights", bool, True) else 1.0,
        dropout=keys.get("resid_pdrop", float, 0.1),
        init_std=keys.get("initializer_range", float, 0.02),
        tied=keys.get("tie_word_embeddings", bool, True),
    )


def write(c: ModelConfig) -> dict[str, Any]:
    """As GPT-BigCode."""
    return {
        "architectures": ["GPTBigCodeForCausalLM"],
        "model_type": "gpt_bigcode",
        "vocab_size": c.vocab_size,
        "n_embd": c.d_model,
        "n_layer": c.n_layers,
        "n_head": c.n_heads,
        "n_positions": c.max_positions,
        "n_inner": c.d_ff,
        "activation_function": activation_name(c.activation),
        "layer_norm_epsilon": c.norm_eps,
        "multi_query": c.n_kv_heads == 1,
        "scale_attn_weights": c.attention_scale != 1.0,
        "resid_pdrop": c.dropout,
        "embd_pdrop": c.dropout,
        "attn_pdrop": c.dropout,
        "initializer_range": c.init_std,
        "tie_word_embeddings": c.tied,
    }


_QKV = tuple(f"stack.blocks.*.attention.{name}" for name in "qkv")

FAMILY = Family(
    "gpt_bigcode",
    read,
    write,
    lines(
        line("transformer.wte.weight", "input.tokens.weight"),
        line("transformer.wpe.weight", "input.position.weight"),
        module("transformer.h.*.ln_1", "stack.blocks.*.around_attention.norm"),
        module("transformer.h.*.attn.c_attn", *_QKV, transform=Fused()),
        module("transformer.h.*.attn.c_proj", "stack.blocks.*.attention.out"),
        module("transformer.h.*.ln_2", "stack.blocks.*.around_ffn.norm"),
        module("transformer.h.*.mlp.c_fc", "stack.blocks.*.ffn.up"),
        module("transformer.h.*.mlp.c_proj", "stack.blocks.*.ffn.down"),
        module("transformer.ln_f", "stack.norm"),
        line("lm_head.weight", "head.weight"),
    ),
    prefix="transformer.",
    twins={"lm_head.weight": "transformer.wte.weight"},
    harmless=(r"transformer\.h\.\d+\.attn\.(bias|masked_bias)",),  # the causal mask, as a tensor
)

__all__ = ["FAMILY"]
