"""BART (Lewis et al. 2020, arXiv:1910.13461): the original wiring, with a number per token added to the logits.

It has learned positions, two rows late, and a norm over the input, one for each side.
"""

from typing import Any

from gnomon.checkpoints.hf.family import ACTIVATIONS, Family, activation_name, lines
from gnomon.checkpoints.hf.keys import LAYERS, Keys
from gnomon.checkpoints.hf.table import Line, Row, line, module
from gnomon.errors import BadInput
from gnomon.models import ModelConfig
from gnomon.positions import get

OFFSET = 2


def read(keys: Keys, before: bool = False, **more: Any) -> ModelConfig:
    """A config of this wiring, with `more` settings of a relative; before: whether norms are, as some files say."""
    keys.must("normalize_before", before)
    keys.must("do_blenderbot_90_layernorm", False)
    keys.must("add_final_layer_norm", before)
    keys.must("add_bias_logits", False)
    settings = {
        "architecture": "encoder-decoder",
        "vocab_size": keys.size("vocab_size"),
        "d_model": keys.size("d_model"),
        "n_layers": keys.size("encoder_layers", "num_hidden_layers", most=LAYERS),
        "n_decoder_layers": keys.size("decoder_layers", most=LAYERS),
        "n_heads": _both(keys, "attention_heads"),
        "d_ff": _both(keys, "ffn_dim"),
        "placement": "pre" if before else "post",
        "max_positions": keys.size("max_position_embeddings", default=1024),
        "dropout": keys.get("dropout", float, 0.1),
        "activation": keys.word("activation_function", ACTIVATIONS, "gelu"),
        "embed_scale": "sqrt" if keys.get("scale_embedding", bool, False) else None,
        "init_std": keys.get("init_std", float, 0.02),
        "tied": keys.get("tie_word_embeddings", bool, True),
        "head_bias": "final_logits_bias" in keys.names,
    }
    return ModelConfig(**{**settings, **more})


def _both(keys: Keys, name: str) -> int:
    """A size that encoder and decoder share."""
    ours = keys.get(f"encoder_{name}", int)
    if keys.get(f"decoder_{name}", int) != ours:
        raise BadInput(f"{keys.file}: encoder_{name} and decoder_{name} differ; Gnomon's two stacks have one size")
    return ours


def read_bart(keys: Keys, before: bool = False) -> ModelConfig:
    """Learned positions from row 2 on."""
    keys.must("extra_pos_embeddings", OFFSET)
    keys.must("static_position_embeddings", False)
    keys.must("normalize_embedding", True)
    position = get("learned", offset=OFFSET)
    return read(keys, before, position=position, source_positions=True, input_norm="layernorm")


def write(c: ModelConfig, name: str, architecture: str, **more: Any) -> dict[str, Any]:
    """The config of this wiring, with `more` keys of a relative."""
    return {
        "architectures": [architecture],
        "model_type": name,
        "vocab_size": c.vocab_size,
        "d_model": c.d_model,
        "encoder_layers": c.n_layers,
        "decoder_layers": c.depth,
        "encoder_attention_heads": c.n_heads,
        "decoder_attention_heads": c.n_heads,
        "encoder_ffn_dim": c.d_ff or 4 * c.d_model,
        "decoder_ffn_dim": c.d_ff or 4 * c.d_model,
        "max_position_embeddings": c.max_positions or 1024,
        "activation_function": activation_name(c.activation),
        "dropout": c.dropout,
        "init_std": c.init_std,
        "scale_embedding": c.embed_scale is not None,
        "tie_word_embeddings": c.tied,
        "is_encoder_decoder": True,
        **more,
    }


def write_bart(c: ModelConfig) -> dict[str, Any]:
    """As BART."""
    return write(c, "bart", "BartForConditionalGeneration")


def _attention(theirs: str, ours: str) -> list[Line]:
    parts = (("q_proj", "q"), ("k_proj", "k"), ("v_proj", "v"), ("out_proj", "out"))
    return [entry for a, b in parts for entry in module(f"{theirs}.{a}", f"{ours}.{b}")]


def _layer(side: str) -> tuple[Line, ...]:
    theirs, ours = f"model.{side}.layers.*", f"{side}.blocks.*"
    return lines(
        _attention(f"{theirs}.self_attn", f"{ours}.attention"),
        module(f"{theirs}.self_attn_layer_norm", f"{ours}.around_attention.norm"),
        module(f"{theirs}.fc1", f"{ours}.ffn.up"),
        module(f"{theirs}.fc2", f"{ours}.ffn.down"),
        module(f"{theirs}.final_layer_norm", f"{ours}.around_ffn.norm"),
    )


TABLE = lines(
    line("model.shared.weight", "input.tokens.weight"),
    line("model.encoder.embed_positions.weight", "source_input.position.weight"),
    line("model.decoder.embed_positions.weight", "input.position.weight"),
    module("model.encoder.layernorm_embedding", "source_input.norm"),
    module("model.decoder.layernorm_embedding", "input.norm"),
    *_layer("encoder"),
    *_layer("decoder"),
    module("model.encoder.layer_norm", "encoder.norm"),
    module("model.decoder.layer_norm", "decoder.norm"),
    _attention("model.decoder.layers.*.encoder_attn", "decoder.blocks.*.cross"),
    module("model.decoder.layers.*.encoder_attn_layer_norm", "decoder.blocks.*.around_cross.norm"),
    line("lm_head.weight", "head.weight"),
    line("final_logits_bias", "head.bias", transform=Row()),
)
COPIES = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
TWINS = dict.fromkeys(("lm_head.weight", *COPIES), "model.shared.weight")


def relative(
    name: str, read: Any, write: Any, harmless: tuple[str, ...] = (), table: tuple[Line, ...] = TABLE
) -> Family:
    """A family with BART's names of weights."""
    return Family(name, read, write, table, "model.", twins=TWINS, copies=COPIES, harmless=harmless)


FAMILY = relative("bart", read_bart, write_bart)

__all__ = ["FAMILY"]
