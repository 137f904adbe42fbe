"""T5 (Raffel et al. 2020, arXiv:1910.10683), versions 1.0 and 1.1: one table of relative biases in each stack.

1.0 has a tied head, whose input is scaled by d_model^-0.5; 1.1 has a head of its own and a gated feed-forward. In both
attention does not divide by the root of its width.
"""

from typing import Any

from gnomon.checkpoints.hf.family import ACTIVATIONS, Family, activation_name, lines
from gnomon.checkpoints.hf.keys import LAYERS, Keys
from gnomon.checkpoints.hf.table import Line, line
from gnomon.errors import BadInput, unknown
from gnomon.models import ModelConfig
from gnomon.positions import get
from gnomon.positions.t5 import tables


def read_t5(keys: Keys) -> ModelConfig:
    """Whether the head is scaled follows from whether it was said to be tied."""
    return read(keys, keys.get("scale_decoder_outputs", bool, keys.get("tie_word_embeddings", bool, True)), "relu")


def read(keys: Keys, scaled: bool, usual: str, shared: bool = True) -> ModelConfig:
    """A head of its own is known by its weights: newer files say "tied" even where there is one.

    shared: whether all layers of a stack have one table.
    """
    d_model = keys.size("d_model")
    gate, _, act = keys.get("feed_forward_proj", str, usual).rpartition("-")
    if gate not in ("", "gated") or act not in ACTIVATIONS:
        raise BadInput(f"{keys.file}: {unknown('feed_forward_proj', act, ACTIVATIONS)}, with or without 'gated-'")
    activation: Any = "gelu_tanh" if gate and act == "gelu" else ACTIVATIONS[act]
    keys.must("is_gated_act", bool(gate))
    if (declared := keys.get("dense_act_fn", str, None)) is not None and ACTIVATIONS.get(declared) != activation:
        raise BadInput(
            f"{keys.file}: feed_forward_proj and dense_act_fn say different things, {act!r} and {declared!r}"
        )
    n_layers = keys.size("num_layers", most=LAYERS)
    n_decoder_layers = keys.size("num_decoder_layers", default=None, most=LAYERS) or n_layers
    table = get(
        "t5",
        n_buckets=keys.size("relative_attention_num_buckets", default=32),
        max_distance=keys.size("relative_attention_max_distance", default=128),
    )
    return ModelConfig(
        architecture="encoder-decoder",
        vocab_size=keys.size("vocab_size"),
        d_model=d_model,
        n_layers=n_layers,
        n_decoder_layers=n_decoder_layers,
        n_heads=keys.size("num_heads"),
        d_head=keys.size("d_kv", default=64),
        d_ff=keys.size("d_ff"),
        bias=False,
        norm="rmsnorm",
        attention_scale=1.0,
        position=table if shared else tables(table, max(n_layers, n_decoder_layers)),
        gated=bool(gate),
        activation=activation,
        dropout=keys.get("dropout_rate", float, 0.1),
        norm_eps=keys.get("layer_norm_epsilon", float, 1e-6),
        head_scale=d_model**-0.5 if scaled else 1.0,
        tied=scaled or "lm_head.weight" not in keys.names,
    )


def write_t5(c: ModelConfig) -> dict[str, Any]:
    """As T5."""
    return write(c, "t5", "T5ForConditionalGeneration", tie_word_embeddings=c.head_scale != 1.0)


def write(c: ModelConfig, name: str, architecture: str, **more: Any) -> dict[str, Any]:
    """ "gated-gelu" means the tanh form there."""
    act = "gelu" if c.gated and c.activation == "gelu_tanh" else activation_name(c.activation, "gelu_new")
    options = c.per_layer(c.n_layers)[0].options
    return {
        "architectures": [architecture],
        "model_type": name,
        "vocab_size": c.vocab_size,
        "d_model": c.d_model,
        "d_kv": c.d_model // c.n_heads if c.d_head is None else c.d_head,
        "d_ff": c.d_ff,
        "num_layers": c.n_layers,
        "num_decoder_layers": c.depth,
        "num_heads": c.n_heads,
        "relative_attention_num_buckets": options.get("n_buckets", 32),
        "relative_attention_max_distance": options.get("max_distance", 128),
        "dropout_rate": c.dropout,
        "layer_norm_epsilon": c.norm_eps,
        "feed_forward_proj": f"gated-{act}" if c.gated else act,
        "is_encoder_decoder": True,
        "decoder_start_token_id": 0,
        "pad_token_id": 0,
        **more,
    }


def _attention(theirs: str, ours: str) -> list[Line]:
    return [
        line(f"{theirs}.{a}.weight", f"{ours}.{b}.weight")
        for a, b in (("q", "q"), ("k", "k"), ("v", "v"), ("o", "out"))
    ]


def _ffn(theirs: str, ours: str) -> list[Line]:
    """wi is the only input layer where there is no gate; with one, wi_0 is the gate."""
    name = f"{theirs}.DenseReluDense"
    return [
        line(f"{name}.wi_0.weight", f"{ours}.ffn.gate.weight"),
        line(f"{name}.wi_1.weight", f"{ours}.ffn.up.weight", beside=f"{ours}.ffn.gate.weight"),
        line(f"{name}.wi.weight", f"{ours}.ffn.up.weight"),
        line(f"{name}.wo.weight", f"{ours}.ffn.down.weight"),
        line(f"{theirs}.layer_norm.weight", f"{ours}.around_ffn.norm.weight"),
    ]


_BIAS = "block.*.layer.0.SelfAttention.relative_attention_bias.weight"
_ENCODER, _DECODER = ("encoder.block.*.layer", "encoder.blocks.*"), ("decoder.block.*.layer", "decoder.blocks.*")

TABLE = lines(
    line("shared.weight", "input.tokens.weight"),
    line(f"encoder.{_BIAS}", "encoder.positions.*.weight"),
    line(f"decoder.{_BIAS}", "decoder.positions.*.weight"),
    *(_attention(f"{theirs}.0.SelfAttention", f"{ours}.attention") for theirs, ours in (_ENCODER, _DECODER)),
    *(
        line(f"{theirs}.0.layer_norm.weight", f"{ours}.around_attention.norm.weight")
        for theirs, ours in (_ENCODER, _DECODER)
    ),
    _attention(f"{_DECODER[0]}.1.EncDecAttention", f"{_DECODER[1]}.cross"),
    line(f"{_DECODER[0]}.1.layer_norm.weight", f"{_DECODER[1]}.around_cross.norm.weight"),
    _ffn(f"{_ENCODER[0]}.1", _ENCODER[1]),
    _ffn(f"{_DECODER[0]}.2", _DECODER[1]),
    line("encoder.final_layer_norm.weight", "encoder.norm.weight"),
    line("decoder.final_layer_norm.weight", "decoder.norm.weight"),
    line("lm_head.weight", "head.weight"),
)
TWINS = dict.fromkeys(("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"), "shared.weight")
#: once written by mistake: cross-attention has no distances
MISTAKE = r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight"


def relative(name: str, read: Any, write: Any, rank: int = 1) -> Family:
    """A family with T5's names of weights."""
    return Family(name, read, write, TABLE, twins=TWINS, harmless=(MISTAKE,), rank=rank)


FAMILY = relative("t5", read_t5, write_t5, rank=0)

__all__ = ["FAMILY"]
