"""Gemma 3, its text model (Gemma Team 2025, arXiv:2503.19786): two rotary bases, windows, norms on both sides."""

from typing import Any

from gnomon.checkpoints.hf.families.llama import (
    ATTENTION,
    ENDS,
    FEED_FORWARD,
    INV_FREQ,
    TWINS,
    is_sliding,
    one_or_list,
    one_window,
    sizes,
    sliding_keys,
    width,
)
from gnomon.checkpoints.hf.family import ACTIVATIONS, Family, activation_name, lines
from gnomon.checkpoints.hf.keys import LAYERS, Keys
from gnomon.checkpoints.hf.rope import ROTARY, Rotary, read_rope, write_rope
from gnomon.checkpoints.hf.table import line
from gnomon.errors import BadInput
from gnomon.models import ModelConfig
from gnomon.positions import Spec

KINDS = ("sliding", "full")
WINDOW = 4096  # the family's own; that library builds a mask of this width even where no layer has a window
NEAR, FAR = ROTARY["gemma3_text, layers with a window"], ROTARY["gemma3_text"]


def read(keys: Keys) -> ModelConfig:
    """Layers with a window turn by a base of their own; the context scaling is for the others."""
    keys.must("final_logit_softcapping")
    keys.must("attn_logit_softcapping")  # that library's code of this family never looks at it
    keys.must("use_bidirectional_attention", False)
    d_head, n_layers, bias = (
        width(keys, 256),
        keys.size("num_hidden_layers", most=LAYERS),
        keys.get("attention_bias", bool, False),
    )
    every = keys.size("sliding_window_pattern", default=6)
    if not keys.has("layer_types"):
        keys.must("_sliding_window_pattern", every, None)  # which newer versions write, and never read
    keys.get("_sliding_window_pattern", int, None)
    usual = ["sliding_attention" if (n + 1) % every else "full_attention" for n in range(n_layers)]
    sliding = [is_sliding(keys, kind) for kind in keys.per_layer("layer_types", n_layers, usual)]
    window = keys.size("sliding_window", default=None if "sliding_window" in keys.data else WINDOW)
    if window is None and any(sliding):
        raise BadInput(f"{keys.file}: layer_types names layers with a window, and sliding_window is null")
    near, far = ropes(keys, d_head, NEAR, FAR)
    common = sizes(keys) | {"norm": "rmsnorm_plus_one"}
    return ModelConfig(
        **common,
        d_head=d_head,
        position=one_or_list([near if on else far for on in sliding]),
        window=one_window([window if on else None for on in sliding]),
        qkv_bias=bias,
        out_bias=bias,
        qk_norm=True,
        activation=keys.word("hidden_activation", ACTIVATIONS, "gelu_pytorch_tanh"),
        placement="sandwich",
        attention_scale=score_scale(keys),
        embed_scale="rounded sqrt",
        tied=keys.get("tie_word_embeddings", bool, True),
    )


def score_scale(keys: Keys) -> float:
    """What scores are multiplied by."""
    scalar = keys.get("query_pre_attn_scalar", float, 256.0)
    if scalar <= 0:
        raise BadInput(f"{keys.file}: scores are divided by the root of query_pre_attn_scalar; got {scalar}")
    return float(scalar**-0.5)


def ropes(keys: Keys, d_head: int, near_as: Rotary, far_as: Rotary) -> tuple[Spec, Spec]:
    """The encodings of the layers with a window and of those without: one object each since transformers 5."""
    both = keys.part("rope_parameters")
    windowed, whole = (None, None) if both is None else (both.part(f"{kind}_attention") for kind in KINDS)
    if both is not None:
        both.finish()
    near = read_rope(keys, d_head, near_as, {"rope_parameters": windowed})
    parts = {"rope_parameters": whole, "rope_scaling": keys.part("rope_scaling")}
    return near, read_rope(keys, d_head, far_as, parts)


def as_whole_number(x: float) -> int | float:
    return int(x) if x == int(x) else x  # that library takes a whole number there


def write(c: ModelConfig) -> dict[str, Any]:
    """As Gemma 3."""
    d_head = c.d_model // c.n_heads if c.d_head is None else c.d_head
    near, far = near_and_far(c)
    sliding = sliding_keys(c)
    scale = d_head**-0.5 if c.attention_scale is None else c.attention_scale
    return {
        "architectures": ["Gemma3ForCausalLM"],
        "model_type": "gemma3_text",
        "vocab_size": c.vocab_size,
        "hidden_size": c.d_model,
        "intermediate_size": c.d_ff,
        "num_hidden_layers": c.n_layers,
        "num_attention_heads": c.n_heads,
        "num_key_value_heads": c.n_kv_heads,
        "head_dim": d_head,
        "hidden_activation": activation_name(c.activation),
        "rms_norm_eps": c.norm_eps,
        "initializer_range": c.init_std,
        "attention_dropout": c.dropout,
        "attention_bias": bool(c.qkv_bias),
        "tie_word_embeddings": c.tied,
        "query_pre_attn_scalar": as_whole_number(round(scale**-2, 6)),
        "sliding_window": sliding["sliding_window"] or WINDOW,
        "layer_types": sliding["layer_types"],
        "rope_local_base_freq": write_rope(near, d_head, None, NEAR)["rope_theta"],
        **write_rope(far, d_head, c.max_positions, FAR),
    }


def near_and_far(c: ModelConfig) -> tuple[Spec, Spec]:
    """The encodings of the layers with a window and of those without; where there are none, of the others."""
    windows, specs = c.windows(c.n_layers), c.per_layer(c.n_layers)
    near = next((spec for spec, window in zip(specs, windows, strict=True) if window is not None), specs[0])
    return near, next((spec for spec, window in zip(specs, windows, strict=True) if window is None), specs[0])


def both_sides(name: str, read: Any, write: Any) -> Family:
    """A family with norms on both sides of each sublayer, and Llama's names otherwise."""
    table = lines(
        ENDS,
        ATTENTION,
        FEED_FORWARD,
        line("model.layers.*.input_layernorm.weight", "stack.blocks.*.around_attention.norm.weight"),
        line("model.layers.*.post_attention_layernorm.weight", "stack.blocks.*.around_attention.norm_after.weight"),
        line("model.layers.*.pre_feedforward_layernorm.weight", "stack.blocks.*.around_ffn.norm.weight"),
        line("model.layers.*.post_feedforward_layernorm.weight", "stack.blocks.*.around_ffn.norm_after.weight"),
    )
    return Family(name, read, write, table, prefix="model.", twins=TWINS, harmless=(INV_FREQ,))


FAMILY = both_sides("gemma3_text", read, write)

__all__ = ["FAMILY"]
