"""MPT (MosaicML 2023): ALiBi in a causal decoder without biases."""

from typing import Any

from gnomon.checkpoints.hf.family import Family, lines
from gnomon.checkpoints.hf.keys import LAYERS, Keys
from gnomon.checkpoints.hf.table import Stacked, line
from gnomon.errors import BadValue
from gnomon.models import ModelConfig
from gnomon.positions import get

_QKV = tuple(f"stack.blocks.*.attention.{name}" for name in "qkv")


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
        vocab_size=keys.size("vocab_size"),
        d_model=d_model,
        n_layers=keys.size("n_layers", most=LAYERS),
        n_heads=keys.size("n_heads"),
        d_ff=keys.size("expansion_ratio", default=4) * d_model,
        position=get("alibi"),
        max_positions=keys.size("max_seq_len", default=2048),
        norm="layernorm_no_bias",
        bias=False,
        attention_scale=scale,
        norm_eps=keys.get("layer_norm_epsilon", float, 1e-5),
        dropout=keys.get("resid_pdrop", float, 0.0),
        init_std=keys.get("initializer_range", float, 0.02),
        tied=keys.get("tie_word_embeddings", bool, True),
    )


def write_mpt(c: ModelConfig) -> dict[str, Any]:
    """As MPT."""
    if c.d_ff not in (None, 4 * c.d_model):
        raise BadValue(
            f"d_ff = {c.d_ff}: that library's MPT is 4 * d_model = {4 * c.d_model} wide, whatever its config says"
        )
    return {
        "architectures": ["MptForCausalLM"],
        "model_type": "mpt",
        "vocab_size": c.vocab_size,
        "d_model": c.d_model,
        "n_layers": c.n_layers,
        "n_heads": c.n_heads,
        "expansion_ratio": 4,
        "max_seq_len": c.max_positions or 2048,
        "layer_norm_epsilon": c.norm_eps,
        "resid_pdrop": c.dropout,
        "emb_pdrop": c.dropout,
        "no_bias": True,
        "initializer_range": c.init_std,
        "tie_word_embeddings": c.tied,
        "attn_config": {"alibi": True, "softmax_scale": c.attention_scale},
    }


FAMILY = Family(
    "mpt",
    read_mpt,
    write_mpt,
    lines(
        line("transformer.wte.weight", "input.tokens.weight"),
        line("transformer.blocks.*.norm_1.weight", "stack.blocks.*.around_attention.norm.weight"),
        line("transformer.blocks.*.attn.Wqkv.weight", *(f"{name}.weight" for name in _QKV), transform=Stacked()),
        line("transformer.blocks.*.attn.out_proj.weight", "stack.blocks.*.attention.out.weight"),
        line("transformer.blocks.*.norm_2.weight", "stack.blocks.*.around_ffn.norm.weight"),
        line("transformer.blocks.*.ffn.up_proj.weight", "stack.blocks.*.ffn.up.weight"),
        line("transformer.blocks.*.ffn.down_proj.weight", "stack.blocks.*.ffn.down.weight"),
        line("transformer.norm_f.weight", "stack.norm.weight"),
        line("lm_head.weight", "head.weight"),
    ),
    prefix="transformer.",
    twins={"lm_head.weight": "transformer.wte.weight"},
)

__all__ = ["FAMILY"]
