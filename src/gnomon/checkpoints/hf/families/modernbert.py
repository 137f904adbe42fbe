"""ModernBERT (Warner et al. 2024, arXiv:2412.13663): a gated encoder with norms before, most of whose layers see a
window and turn by a base of their own."""

from typing import Any

from gnomon.checkpoints.hf.families.bert import CLASSES, head_of
from gnomon.checkpoints.hf.families.gemma3_text import near_and_far, ropes
from gnomon.checkpoints.hf.families.llama import is_sliding, one_or_list, one_window, sliding_keys
from gnomon.checkpoints.hf.family import ACTIVATIONS, Family, activation_name, lines
from gnomon.checkpoints.hf.keys import LAYERS, Keys
from gnomon.checkpoints.hf.rope import ROTARY, write_rope
from gnomon.checkpoints.hf.table import Stacked, line, module
from gnomon.errors import BadInput, BadValue
from gnomon.models import ModelConfig

NEAR, FAR = ROTARY["modernbert, layers with a window"], ROTARY["modernbert"]
WINDOW = 128  # the family's own, counted over both sides
KNOWN = ("masked", "pooled")


def read(keys: Keys) -> ModelConfig:
    """A window of 128 sees 64 tokens on either side."""
    head = head_of(keys, "ModernBert")
    if head["head"] not in KNOWN:
        raise BadInput(f"{keys.file}: of ModernBERT's heads that for masked tokens is known, or none (ModernBertModel)")
    n_layers, bias = keys.size("num_hidden_layers", most=LAYERS), keys.get("mlp_bias", bool, False)
    every, d_model, n_heads = (
        keys.size("global_attn_every_n_layers", default=3),
        keys.size("hidden_size"),
        keys.size("num_attention_heads"),
    )
    usual = [f"{'sliding' if n % every else 'full'}_attention" for n in range(n_layers)]
    sliding = [is_sliding(keys, kind) for kind in keys.per_layer("layer_types", n_layers, usual)]
    near, far = ropes(keys, d_model // n_heads, NEAR, FAR)
    window = keys.size("local_attention", default=WINDOW) // 2 + 1
    norm: Any = "layernorm" if keys.get("norm_bias", bool, False) else "layernorm_no_bias"
    if head["head"] == "masked":
        keys.must("decoder_bias", True)
        keys.must("classifier_bias", bias)
        head["head_activation"] = keys.word("classifier_activation", ACTIVATIONS, "gelu")
    keys._read.update(("decoder_bias", "classifier_bias", "classifier_activation"))
    outer = keys.get("attention_bias", bool, False)
    return ModelConfig(
        architecture="encoder-only",
        causal=False,
        vocab_size=keys.size("vocab_size"),
        d_model=d_model,
        n_layers=n_layers,
        n_heads=n_heads,
        d_ff=keys.size("intermediate_size"),
        gated=True,
        norm=norm,
        input_norm=norm,
        norm_eps=keys.get("norm_eps", float, 1e-5),
        first_norm=False,
        activation=keys.word("hidden_activation", ACTIVATIONS, "gelu"),
        bias=bias,
        qkv_bias=outer,
        out_bias=outer,
        position=one_or_list([near if on else far for on in sliding]),
        window=one_window([window if on else None for on in sliding]),
        max_positions=keys.size("max_position_embeddings"),
        dropout=keys.get("embedding_dropout", float, 0.0),
        init_std=keys.get("initializer_range", float, 0.02),
        tied=keys.get("tie_word_embeddings", bool, True) or head["head"] != "masked",
        **head,
    )


def write(c: ModelConfig) -> dict[str, Any]:
    """As ModernBERT."""
    if c.head not in KNOWN:
        raise BadValue(f"head = {c.head}: of the family's heads that for masked tokens is known")
    near, far = near_and_far(c)
    d_head, sliding = c.d_model // c.n_heads, sliding_keys(c)
    window = sliding["sliding_window"]
    return {
        "architectures": ["ModernBert" + CLASSES.get(c.head, "Model")],
        "model_type": "modernbert",
        "vocab_size": c.vocab_size,
        "hidden_size": c.d_model,
        "num_hidden_layers": c.n_layers,
        "num_attention_heads": c.n_heads,
        "intermediate_size": c.d_ff,
        "norm_eps": c.norm_eps,
        "hidden_activation": activation_name(c.activation),
        "norm_bias": c.norm == "layernorm",
        "mlp_bias": c.bias,
        "attention_bias": bool(c.qkv_bias),
        "classifier_bias": c.bias,
        "decoder_bias": True,
        "classifier_activation": activation_name(c.head_activation or "gelu"),
        "embedding_dropout": c.dropout,
        "attention_dropout": c.dropout,
        "mlp_dropout": c.dropout,
        "initializer_range": c.init_std,
        "tie_word_embeddings": c.tied,
        "layer_types": sliding["layer_types"],
        "local_attention": WINDOW if window is None else 2 * (window - 1),
        "pad_token_id": None,
        "max_position_embeddings": c.max_positions or 8192,
        "local_rope_theta": write_rope(near, d_head, None, NEAR)["rope_theta"],
        "global_rope_theta": write_rope(far, d_head, None, FAR)["rope_theta"],
    }


_LAYER, _OURS = "model.layers.*", "stack.blocks.*"

FAMILY = Family(
    "modernbert",
    read,
    write,
    lines(
        line("model.embeddings.tok_embeddings.weight", "input.tokens.weight"),
        module("model.embeddings.norm", "input.norm"),
        module(f"{_LAYER}.attn_norm", f"{_OURS}.around_attention.norm"),
        module(f"{_LAYER}.attn.Wqkv", *(f"{_OURS}.attention.{part}" for part in "qkv"), transform=Stacked()),
        module(f"{_LAYER}.attn.Wo", f"{_OURS}.attention.out"),
        module(f"{_LAYER}.mlp_norm", f"{_OURS}.around_ffn.norm"),
        module(f"{_LAYER}.mlp.Wi", f"{_OURS}.ffn.gate", f"{_OURS}.ffn.up", transform=Stacked()),
        module(f"{_LAYER}.mlp.Wo", f"{_OURS}.ffn.down"),
        module("model.final_norm", "stack.norm"),
    ),
    prefix="model.",
    heads={
        "masked": lines(
            module("head.dense", "head.transform"),
            module("head.norm", "head.norm"),
            line("decoder.weight", "head.out.weight"),
            line("decoder.bias", "head.out.bias"),
        ),
    },
    twins={"decoder.weight": "model.embeddings.tok_embeddings.weight"},
    harmless=(r"(head\.(dense|norm)|decoder)\..*",),  # of the head for masked tokens, where the body alone is read
)

__all__ = ["FAMILY"]
