"""Falcon (Almazrouei et al. 2023, arXiv:2311.16867): sublayers side by side, few keys for many queries.

The older decoder has one key for all heads, or one for each, and one norm before both sublayers, or one before each in
turn. The newer one has groups of heads with a key each, and two norms beside each other, or one.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gnomon.checkpoints.hf.family import ACTIVATIONS, Family, activation_name, lines
from gnomon.checkpoints.hf.keys import LAYERS, Keys
from gnomon.checkpoints.hf.rope import ROTARY, read_rope, write_rope
from gnomon.checkpoints.hf.table import Line, Shape, Stacked, line, module
from gnomon.errors import BadInput, BadValue
from gnomon.models import ModelConfig
from gnomon.positions import Spec


class Grouped(Stacked):
    """Rows in the order (group, which, channel): the queries of a group of heads, their key, their value."""

    def split(self, theirs: Tensor, ours: Sequence[Shape], config: ModelConfig) -> Sequence[Tensor]:
        """Cut within each group."""
        groups, rows = config.n_kv_heads or config.n_heads, [shape[0] for shape in ours]
        blocks = torch.split(theirs.view(groups, -1, *theirs.shape[1:]), [n // groups for n in rows], 1)
        return [block.flatten(0, 1) for block in blocks]

    def join(self, ours: Sequence[Tensor], config: ModelConfig) -> Tensor:
        """Those of each group in turn."""
        groups = config.n_kv_heads or config.n_heads
        blocks = [part.reshape(groups, -1, *part.shape[1:]) for part in ours]
        return Stacked.join(self, [block.transpose(0, 1) for block in blocks], config).transpose(0, 1).flatten(0, 1)


def read(keys: Keys) -> ModelConfig:
    """Its ALiBi is refused: that library computes it with slopes and distances rounded to bfloat16."""
    keys.must("alibi", False)
    keys.must("apply_residual_connection_post_layernorm", False)
    d_model, n_heads = keys.size("hidden_size", "n_embed"), keys.size("num_attention_heads", "n_head")
    newer, bias = keys.get("new_decoder_architecture", bool, False), keys.get("bias", bool, False)
    position: Spec = read_rope(keys, d_model // n_heads, ROTARY["falcon"])
    return ModelConfig(
        vocab_size=keys.size("vocab_size"),
        d_model=d_model,
        n_heads=n_heads,
        n_kv_heads=_shared(keys, n_heads, newer),
        n_layers=keys.size("num_hidden_layers", "n_layer", most=LAYERS),
        position=position,
        residual=_residual(keys, newer),
        d_ff=keys.size("ffn_hidden_size", default=None) or 4 * d_model,
        bias=bias,
        max_positions=keys.size("max_position_embeddings", default=2048),
        activation=keys.word("activation", ACTIVATIONS, "gelu"),
        norm_eps=keys.get("layer_norm_epsilon", float, 1e-5),
        dropout=keys.get("hidden_dropout", float, 0.0),
        init_std=keys.get("initializer_range", float, 0.02),
        tied=keys.get("tie_word_embeddings", bool, True),
    )


def _shared(keys: Keys, n_heads: int, newer: bool) -> int:
    """The number of key/value heads."""
    groups, one = keys.size("num_kv_heads", default=None) or n_heads, keys.get("multi_query", bool, True)
    if newer:
        return groups
    if not one and groups != n_heads:
        raise BadInput(
            f"{keys.file}: num_kv_heads is {groups}; the older decoder has one, or one for each of {n_heads}"
        )
    return 1 if one else n_heads


def _residual(keys: Keys, newer: bool) -> Any:
    """How the sublayers and their norms stand to each other."""
    if newer:
        keys.must("parallel_attn", True)
        keys.must("num_ln_in_parallel_attn", 1, 2, None)
        return "one norm" if keys.get("num_ln_in_parallel_attn", int, None) == 1 else "parallel"
    keys.must("num_ln_in_parallel_attn", 1, None)
    return "one norm" if keys.get("parallel_attn", bool, True) else "sequential"


def write(c: ModelConfig) -> dict[str, Any]:
    """As Falcon: the older decoder where it can say it."""
    newer = c.residual == "parallel" or c.n_kv_heads not in (1, c.n_heads)
    if newer and c.residual == "sequential":
        raise BadValue(f"n_kv_heads = {c.n_kv_heads}: with sublayers in turn the family knows 1 or {c.n_heads}")
    return {
        "architectures": ["FalconForCausalLM"],
        "model_type": "falcon",
        "vocab_size": c.vocab_size,
        "hidden_size": c.d_model,
        "num_hidden_layers": c.n_layers,
        "num_attention_heads": c.n_heads,
        "num_kv_heads": c.n_kv_heads if newer else c.n_heads,
        "multi_query": c.n_kv_heads == 1,
        "new_decoder_architecture": newer,
        "parallel_attn": c.residual != "sequential",
        "num_ln_in_parallel_attn": (2 if c.residual == "parallel" else 1) if newer else None,
        "alibi": False,
        "ffn_hidden_size": c.d_ff,
        "bias": c.bias,
        "activation": activation_name(c.activation),
        "layer_norm_epsilon": c.norm_eps,
        "hidden_dropout": c.dropout,
        "attention_dropout": c.dropout,
        "initializer_range": c.init_std,
        "tie_word_embeddings": c.tied,
        **write_rope(c.per_layer(1)[0], c.d_model // c.n_heads, c.max_positions, ROTARY["falcon"]),
    }


def norms(c: ModelConfig) -> tuple[Line, ...]:
    """What the norms of a layer are called."""
    beside = c.residual == "parallel"
    first, second = ("ln_attn", "ln_mlp") if beside else ("input_layernorm", "post_attention_layernorm")
    return lines(
        module(f"transformer.h.*.{first}", "stack.blocks.*.around_attention.norm"),
        module(f"transformer.h.*.{second}", "stack.blocks.*.around_ffn.norm"),
    )


_QKV = tuple(f"stack.blocks.*.attention.{name}" for name in "qkv")

FAMILY = Family(
    "falcon",
    read,
    write,
    lines(
        line("transformer.word_embeddings.weight", "input.tokens.weight"),
        module("transformer.h.*.self_attention.query_key_value", *_QKV, transform=Grouped()),
        module("transformer.h.*.self_attention.dense", "stack.blocks.*.attention.out"),
        module("transformer.h.*.mlp.dense_h_to_4h", "stack.blocks.*.ffn.up"),
        module("transformer.h.*.mlp.dense_4h_to_h", "stack.blocks.*.ffn.down"),
        module("transformer.ln_f", "stack.norm"),
        line("lm_head.weight", "head.weight"),
    ),
    prefix="transformer.",
    twins={"lm_head.weight": "transformer.word_embeddings.weight"},
    norms=norms,
    rank=2,
    harmless=(r"transformer\.h\.\d+\.self_attention\.rotary_emb\.inv_freq",),
)

__all__ = ["FAMILY"]
