"""SmolLM3 (Hugging Face 2025): no position in every fourth layer."""

from typing import Any

from gnomon.checkpoints.hf.families.llama import one_or_list, read, relative, sliding_keys, width, windows, write
from gnomon.checkpoints.hf.keys import LAYERS, Keys
from gnomon.checkpoints.hf.rope import ROTARY, read_rope
from gnomon.models import ModelConfig
from gnomon.positions import NoPE, Spec


def read_config(keys: Keys) -> ModelConfig:
    """no_rope_layers has 1 where a layer is rotated and 0 where it has no position."""
    n_layers, bias = keys.size("num_hidden_layers", most=LAYERS), keys.get("attention_bias", bool, False)
    every = keys.size("no_rope_layer_interval", default=4)
    rotated = keys.per_layer("no_rope_layers", n_layers, [int((n + 1) % every != 0) for n in range(n_layers)])
    rope = read_rope(keys, width(keys), ROTARY["smollm3"])
    position = one_or_list([rope if on else Spec(NoPE) for on in rotated])
    sliding = [not on for on in rotated]
    return read(
        keys,
        ROTARY["smollm3"],
        width(keys),
        position=position,
        window=windows(keys, sliding),
        bias=keys.get("mlp_bias", bool, False),
        qkv_bias=bias,
        out_bias=bias,
        tied=keys.get("tie_word_embeddings", bool, True),
    )


def write_config(c: ModelConfig) -> dict[str, Any]:
    """As SmolLM3."""
    rotated = [int(spec.name == "rope") for spec in c.per_layer(c.n_layers)]
    bias = {"attention_bias": bool(c.qkv_bias), "mlp_bias": c.bias}
    return write(
        c, "smollm3", "SmolLM3ForCausalLM", ROTARY["smollm3"], no_rope_layers=rotated, **bias, **sliding_keys(c)
    )


FAMILY = relative("smollm3", read_config, write_config)

__all__ = ["FAMILY"]
