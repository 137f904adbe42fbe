"""Cohere's Command R7B (2024, arXiv:2504.00698): Command R with a window in three of four layers; the fourth sees all,
without position."""

from typing import Any

from gnomon.checkpoints.hf.families.cohere import family
from gnomon.checkpoints.hf.families.llama import is_sliding, one_or_list, one_window, sliding_keys, width
from gnomon.checkpoints.hf.families.llama import read as read_llama
from gnomon.checkpoints.hf.families.llama import write as write_llama
from gnomon.checkpoints.hf.keys import LAYERS, Keys
from gnomon.checkpoints.hf.rope import ROTARY, read_rope
from gnomon.errors import BadInput
from gnomon.models import ModelConfig
from gnomon.positions import NoPE, Spec

WINDOW, EVERY = 4096, 4  # the family's own
#: what its published files say of its code
SAID = {
    "use_qk_norm": False,
    "use_parallel_block": True,
    "use_gated_activation": True,
    "rotary_pct": 1.0,
    "position_embedding_type": "rope_gptj",
    "use_embedding_sharing": True,
    "order_of_interleaved_layers": "local_attn_first",
}


def read(keys: Keys) -> ModelConfig:
    """attention_bias is of all four projections."""
    for key, value in SAID.items():
        keys.must(key, value)
    d_head, n_layers = width(keys), keys.size("num_hidden_layers", most=LAYERS)
    keys.must("head_dim", keys.size("hidden_size") // keys.size("num_attention_heads"), None)
    every = keys.size("sliding_window_pattern", default=EVERY)
    for key in ("layer_switch", "_sliding_window_pattern"):
        keys.must(key, every, None)
    usual = [f"{'sliding' if (n + 1) % every else 'full'}_attention" for n in range(n_layers)]
    sliding = [is_sliding(keys, kind) for kind in keys.per_layer("layer_types", n_layers, usual)]
    window = keys.size("sliding_window", default=None if "sliding_window" in keys.data else WINDOW)
    if window is None:
        raise BadInput(f"{keys.file}: sliding_window is null, which this family's code does not compute")
    rope, bias = read_rope(keys, d_head, ROTARY["cohere2"]), keys.get("attention_bias", bool, False)
    return read_llama(
        keys,
        ROTARY["cohere2"],
        d_head,
        eps="layer_norm_eps",
        norm="layernorm_no_bias",
        residual="one norm",
        qkv_bias=bias,
        out_bias=bias,
        head_scale=keys.get("logit_scale", float, 0.0625),
        position=one_or_list([rope if on else Spec(NoPE) for on in sliding]),
        window=one_window([window if on else None for on in sliding]),
        tied=keys.get("tie_word_embeddings", bool, True),
    )


def write(c: ModelConfig) -> dict[str, Any]:
    """As Cohere 2."""
    told = sliding_keys(c)
    told["sliding_window"] = told["sliding_window"] or WINDOW
    del told["use_sliding_window"]
    keys = write_llama(
        c,
        "cohere2",
        "Cohere2ForCausalLM",
        ROTARY["cohere2"],
        attention_bias=bool(c.qkv_bias),
        logit_scale=c.head_scale,
        layer_norm_eps=c.norm_eps,
        **told,
    )
    del keys["rms_norm_eps"]
    return keys


FAMILY = family("cohere2", read, write)

__all__ = ["FAMILY"]
