"""OLMo 3 (OLMo Team 2025, arXiv:2512.13961): OLMo 2 with a window in three of four layers, scaling in the fourth."""

from dataclasses import replace
from typing import Any

from gnomon.checkpoints.hf.families.gemma3_text import near_and_far, ropes
from gnomon.checkpoints.hf.families.llama import is_sliding, one_or_list, one_window, sliding_keys, width
from gnomon.checkpoints.hf.families.llama import read as read_llama
from gnomon.checkpoints.hf.families.llama import write as write_llama
from gnomon.checkpoints.hf.families.olmo2 import norms_behind
from gnomon.checkpoints.hf.keys import LAYERS, Keys
from gnomon.checkpoints.hf.rope import ROTARY
from gnomon.errors import BadInput
from gnomon.models import ModelConfig

WINDOW = 4096  # the family's own
NEAR, FAR = ROTARY["olmo3, layers with a window"], ROTARY["olmo3"]


def read(keys: Keys) -> ModelConfig:
    """attention_bias is of all four projections."""
    d_head, n_layers = width(keys), keys.size("num_hidden_layers", most=LAYERS)
    usual = [f"{'sliding' if (n + 1) % 4 else 'full'}_attention" for n in range(n_layers)]
    sliding = [is_sliding(keys, kind) for kind in keys.per_layer("layer_types", n_layers, usual)]
    window = keys.size("sliding_window", default=None if "sliding_window" in keys.data else WINDOW)
    if window is None:
        raise BadInput(f"{keys.file}: sliding_window is null, which this family's code does not compute")
    (near, far), bias = ropes(keys, d_head, NEAR, FAR), keys.get("attention_bias", bool, False)
    return read_llama(
        keys,
        FAR,
        d_head,
        placement="branch",
        qk_norm="joint",
        qkv_bias=bias,
        out_bias=bias,
        position=one_or_list([near if on else far for on in sliding]),
        window=one_window([window if on else None for on in sliding]),
    )


def write(c: ModelConfig) -> dict[str, Any]:
    """As OLMo 3; layers with a window turn by the family's own base, so the others must name it where it is another."""
    _, far = near_and_far(c)
    told = sliding_keys(c)
    told["sliding_window"] = told["sliding_window"] or WINDOW
    del told["use_sliding_window"]
    return write_llama(
        replace(c, position=far),
        "olmo3",
        "Olmo3ForCausalLM",
        FAR,
        attention_bias=bool(c.qkv_bias),
        **told,
    )


FAMILY = norms_behind("olmo3", read, write)

__all__ = ["FAMILY"]
