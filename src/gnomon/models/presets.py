"""The presets: published models and small ones, as changes to what a model is by default."""

from collections.abc import Mapping
from typing import Any

from gnomon.errors import Named, must_be
from gnomon.models.config import ModelConfig

_GPT2 = {"activation": "gelu_tanh", "position": "learned", "tied": True, "dropout": 0.1}
_MINI = {"vocab_size": 512, "d_model": 128, "n_layers": 4, "n_heads": 4}
_LLAMA = {"position": "rope", "activation": "silu", "gated": True, "norm": "rmsnorm", "bias": False, "n_kv_heads": 2}
_VASWANI = {"position": "sinusoidal", "activation": "relu", "placement": "post", "embed_scale": "sqrt", "dropout": 0.1}
_BERT = {
    "position": "learned",
    "activation": "gelu",
    "placement": "post",
    "norm_eps": 1e-12,
    "n_types": 2,
    "input_norm": "layernorm",
    "dropout": 0.1,
}
PRESETS: Named[dict[str, Any]] = Named(
    "preset",
    {
        "mini-gpt": {**_MINI, **_GPT2, "max_positions": 64},
        "mini-llama": {**_MINI, **_LLAMA},
        "gpt2-small": {
            "vocab_size": 50257,
            "d_model": 768,
            "n_layers": 12,
            "n_heads": 12,
            "max_positions": 1024,
            **_GPT2,
        },
        "vaswani-base": {
            "architecture": "encoder-decoder",
            "vocab_size": 37000,
            "d_model": 512,
            "n_layers": 6,
            "n_heads": 8,
            **_VASWANI,
        },
        "bert-base": {
            "architecture": "encoder-only",
            "causal": False,
            "vocab_size": 30522,
            "d_model": 768,
            "n_layers": 12,
            "n_heads": 12,
            "max_positions": 512,
            "head": "pooled",
            "pooling": "first",
            "pooler": True,
            **_BERT,
        },
    },
)


def preset(name: str, /, **changes: Any) -> ModelConfig:
    """The config of a preset, with `changes` laid over it.

    mini-gpt    867 072 parameters: GPT-2's block, 4 layers of width 128, 64 learned positions, 512 tokens
    mini-llama  the same size the modern way: RoPE, RMSNorm, SwiGLU, grouped-query attention, no biases
    gpt2-small  124 439 808 parameters
    vaswani-base  63 082 496 parameters: the original Transformer with one table of 37 000 tokens
    bert-base   109 482 240 parameters: with its pooler, without a head over the vocabulary
    """
    must_be("name", name, str, "such as 'mini-gpt'")
    return ModelConfig.from_dict(merge_settings(PRESETS[name], changes))


def merge_settings(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with `changes` laid over them. Options of a position that have no name are those of the base's."""
    position = changes.get("position")
    if not isinstance(position, Mapping) or not position or "name" in position:
        return {**base, **changes}
    own = base.get("position", "rope")
    own = {"name": own} if isinstance(own, str) else own  # its options go with its name
    return {**base, **changes, "position": {**own, **position}}


def presets() -> Named[ModelConfig]:
    """The config of every preset by name, as `gn.DecoderOnly.from_preset(name)` builds it; `preset` explains them."""
    return Named("preset", {name: preset(name) for name in PRESETS})


__all__ = ["PRESETS", "merge_settings", "preset", "presets"]
