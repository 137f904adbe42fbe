"""Gemma 2 (Gemma Team 2024, arXiv:2408.00118): a window in every other layer, soft caps of scores and of logits."""

from typing import Any

from gnomon.checkpoints.hf.families.gemma3_text import WINDOW, as_whole_number, both_sides, score_scale
from gnomon.checkpoints.hf.families.llama import is_sliding, one_window, sizes, sliding_keys, width
from gnomon.checkpoints.hf.families.llama import write as write_llama
from gnomon.checkpoints.hf.family import ACTIVATIONS
from gnomon.checkpoints.hf.keys import LAYERS, Keys
from gnomon.checkpoints.hf.rope import ROTARY, read_rope
from gnomon.errors import BadInput
from gnomon.models import ModelConfig
from gnomon.models.model_settings import Window


def read(keys: Keys) -> ModelConfig:
    """Where a cap is null there is none; where it is left out, it is the family's own."""
    keys.must("use_bidirectional_attention", False)
    bias, d_head = keys.get("attention_bias", bool, False), width(keys, 256)
    return ModelConfig(
        **sizes(keys) | {"norm": "rmsnorm_plus_one"},
        d_head=d_head,
        position=read_rope(keys, d_head, ROTARY["gemma2"]),
        window=_windows(keys),
        activation=keys.word("hidden_activation", ACTIVATIONS, "gelu_pytorch_tanh"),
        placement="sandwich",
        qkv_bias=bias,
        out_bias=bias,
        attention_scale=score_scale(keys),
        embed_scale="rounded sqrt",
        softcap=_cap(keys, "attn_logit_softcapping", 50.0),
        head_softcap=_cap(keys, "final_logit_softcapping", 30.0),
        tied=keys.get("tie_word_embeddings", bool, True),
    )


def _cap(keys: Keys, key: str, usual: float) -> float | None:
    return keys.get(key, float, None if key in keys.data else usual)


def _windows(keys: Keys) -> Window:
    """A window in every other layer, the first one too, unless layer_types says otherwise."""
    n_layers = keys.size("num_hidden_layers", most=LAYERS)
    usual = ["full_attention" if n % 2 else "sliding_attention" for n in range(n_layers)]
    sliding = [is_sliding(keys, kind) for kind in keys.per_layer("layer_types", n_layers, usual)]
    window = keys.size("sliding_window", default=None if "sliding_window" in keys.data else WINDOW)
    if window is None and any(sliding):
        raise BadInput(f"{keys.file}: layer_types names layers with a window, and sliding_window is null")
    return one_window([window if on else None for on in sliding])


def write(c: ModelConfig) -> dict[str, Any]:
    """As Gemma 2."""
    sliding, scale = sliding_keys(c), (c.d_head or 256) ** -0.5 if c.attention_scale is None else c.attention_scale
    config = write_llama(
        c,
        "gemma2",
        "Gemma2ForCausalLM",
        ROTARY["gemma2"],
        attention_bias=bool(c.qkv_bias),
        sliding_window=sliding["sliding_window"] or WINDOW,
        layer_types=sliding["layer_types"],
        query_pre_attn_scalar=as_whole_number(round(scale**-2, 6)),
        attn_logit_softcapping=c.softcap,
        final_logit_softcapping=c.head_softcap,
    )
    return config | {"hidden_activation": config.pop("hidden_act")}


FAMILY = both_sides("gemma2", read, write)

__all__ = ["FAMILY"]
