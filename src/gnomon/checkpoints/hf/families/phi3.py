"""Phi-3 and Phi-4 (Abdin et al. 2024, arXiv:2404.14219): Llama with fused projections and LongRoPE."""

from typing import Any

from gnomon.checkpoints.hf.families.llama import ENDS, INV_FREQ, TWINS, read, write
from gnomon.checkpoints.hf.family import Family, lines
from gnomon.checkpoints.hf.keys import Keys
from gnomon.checkpoints.hf.rope import LENGTH, ROTARY
from gnomon.checkpoints.hf.table import Stacked, line
from gnomon.models import ModelConfig

_QKV = tuple(f"stack.blocks.*.attention.{name}.weight" for name in "qkv")
_GATE_UP = tuple(f"stack.blocks.*.ffn.{name}.weight" for name in ("gate", "up"))


def read_phi3(keys: Keys) -> ModelConfig:
    """The trained length stands beside RoPE's settings here; its code knows no bias and no other width of a head."""
    keys.must("full_attn_mod", 1)
    keys.must("interpolate_factor", 1)
    keys.must("attention_bias", False)
    keys.must("mlp_bias", False)
    keys.must("lm_head_bias", False)
    keys.get(LENGTH, int, 4096)
    d_head = keys.size("hidden_size") // keys.size("num_attention_heads")
    keys.must("head_dim", d_head, None)
    dropout, window = keys.get("resid_pdrop", float, 0.0), keys.size("sliding_window", default=None)
    return read(keys, ROTARY["phi3"], d_head, window=window, dropout=dropout)


def write_phi3(c: ModelConfig) -> dict[str, Any]:
    """As Phi-3, with the trained length beside the scaling, where that library looks for it."""
    config = write(c, "phi3", "Phi3ForCausalLM", ROTARY["phi3"], sliding_window=c.windows(1)[0], resid_pdrop=c.dropout)
    config.pop("head_dim")
    scaled = config.get("rope_scaling", {})
    return {**config, LENGTH: scaled.pop(LENGTH, config["max_position_embeddings"])}


FAMILY = Family(
    "phi3",
    read_phi3,
    write_phi3,
    lines(
        ENDS,
        line("model.layers.*.self_attn.qkv_proj.weight", *_QKV, transform=Stacked()),
        line("model.layers.*.self_attn.o_proj.weight", "stack.blocks.*.attention.out.weight"),
        line("model.layers.*.mlp.gate_up_proj.weight", *_GATE_UP, transform=Stacked()),
        line("model.layers.*.mlp.down_proj.weight", "stack.blocks.*.ffn.down.weight"),
        line("model.layers.*.input_layernorm.weight", "stack.blocks.*.around_attention.norm.weight"),
        line("model.layers.*.post_attention_layernorm.weight", "stack.blocks.*.around_ffn.norm.weight"),
    ),
    prefix="model.",
    twins=TWINS,
    harmless=(INV_FREQ,),
)

__all__ = ["FAMILY"]
