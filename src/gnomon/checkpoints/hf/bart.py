"""BART (Lewis et al. 2020, arXiv:1910.13461) and Marian (Junczys-Dowmunt et al. 2018): the original wiring. mBART (Liu
et al. 2020, arXiv:2001.08210) and PEGASUS (Zhang et al. 2020, arXiv:1912.08777): norms before, one after each stack.

BART and mBART have learned positions, two rows late, and a norm over the input, one for each side; Marian
and PEGASUS have sinusoids, all sines before all cosines. All add a number per token to the logits.
"""

from typing import Any

from gnomon.checkpoints.hf.family import ACTIVATIONS, Family, activation_name, lines
from gnomon.checkpoints.hf.keys import LAYERS, Keys
from gnomon.checkpoints.hf.table import Line, Row, line, module
from gnomon.errors import BadInput
from gnomon.models import ModelConfig
from gnomon.positions import get

OFFSET = 2


def _read(keys: Keys, before: bool = False, **more: Any) -> ModelConfig:
    """before: whether norms are, as some files say."""
    keys.must("normalize_before", before)
    keys.must("do_blenderbot_90_layernorm", False)
    keys.must("add_final_layer_norm", before)
    keys.must("add_bias_logits", False)
    settings = {
        "architecture": "encoder-decoder", "vocab_size": keys.size("vocab_size"),
        "d_model": keys.size("d_model"),
        "n_layers": keys.size("encoder_layers", "num_hidden_layers", most=LAYERS),
        "n_decoder_layers": keys.size("decoder_layers", most=LAYERS),
        "n_heads": _both(keys, "attention_heads"), "d_ff": _both(keys, "ffn_dim"),
        "placement": "pre" if before else "post",
        "max_positions": keys.size("max_position_embeddings", default=1024), "dropout": keys.get("dropout", float, 0.1),
        "activation": keys.word("activation_function", ACTIVATIONS, "gelu"),
        "embed_scale": "sqrt" if keys.get("scale_embedding", bool, False) else None,
        "init_std": keys.get("init_std", float, 0.02), "tied": keys.get("tie_word_embeddings", bool, True),
        "head_bias": "final_logits_bias" in keys.names,
    }  # fmt: skip
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
    return _read(keys, before, position=position, source_positions=True, input_norm="layernorm")


def read_mbart(keys: Keys) -> ModelConfig:
    """As BART, with norms before."""
    return read_bart(keys, before=True)


def read_marian(keys: Keys) -> ModelConfig:
    """Sinusoids, which its files hold as a table too."""
    keys.must("static_position_embeddings", True)
    keys.must("normalize_embedding", False)
    keys.must("share_encoder_decoder_embeddings", True)
    keys.must("decoder_vocab_size", keys.size("vocab_size"), None)
    return _read(keys, position=get("sinusoidal", table="concatenated"))


def read_pegasus(keys: Keys) -> ModelConfig:
    """Sinusoids, and norms before."""
    keys.must("static_position_embeddings", True)
    keys.must("normalize_embedding", False)
    return _read(keys, before=True, position=get("sinusoidal", table="concatenated"))


def _write(c: ModelConfig, name: str, architecture: str, **more: Any) -> dict[str, Any]:
    return {
        "architectures": [architecture], "model_type": name, "vocab_size": c.vocab_size, "d_model": c.d_model,
        "encoder_layers": c.n_layers, "decoder_layers": c.depth, "encoder_attention_heads": c.n_heads,
        "decoder_attention_heads": c.n_heads, "encoder_ffn_dim": c.d_ff or 4 * c.d_model,
        "decoder_ffn_dim": c.d_ff or 4 * c.d_model, "max_position_embeddings": c.max_positions or 1024,
        "activation_function": activation_name(c.activation), "dropout": c.dropout, "init_std": c.init_std,
        "scale_embedding": c.embed_scale is not None, "tie_word_embeddings": c.tied, "is_encoder_decoder": True, **more,
    }  # fmt: skip


def write_bart(c: ModelConfig) -> dict[str, Any]:
    """As BART."""
    return _write(c, "bart", "BartForConditionalGeneration")


def write_mbart(c: ModelConfig) -> dict[str, Any]:
    """As mBART."""
    return _write(c, "mbart", "MBartForConditionalGeneration")


def write_pegasus(c: ModelConfig) -> dict[str, Any]:
    """As PEGASUS."""
    return _write(c, "pegasus", "PegasusForConditionalGeneration", pad_token_id=0, decoder_start_token_id=0)


def write_marian(c: ModelConfig) -> dict[str, Any]:
    """As Marian."""
    ids = {"pad_token_id": c.vocab_size - 1, "decoder_start_token_id": c.vocab_size - 1}
    return _write(c, "marian", "MarianMTModel", share_encoder_decoder_embeddings=True, **ids)


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
    *_layer("encoder"), *_layer("decoder"),
    module("model.encoder.layer_norm", "encoder.norm"),
    module("model.decoder.layer_norm", "decoder.norm"),
    _attention("model.decoder.layers.*.encoder_attn", "decoder.blocks.*.cross"),
    module("model.decoder.layers.*.encoder_attn_layer_norm", "decoder.blocks.*.around_cross.norm"),
    line("lm_head.weight", "head.weight"),
    line("final_logits_bias", "head.bias", how=Row()),
)  # fmt: skip
COPIES = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
TWINS = dict.fromkeys(("lm_head.weight", *COPIES), "model.shared.weight")

SINUSOIDS = (r"model\.(encoder|decoder)\.embed_positions\.weight",)

BART, MBART, MARIAN, PEGASUS = (
    Family(name, reads, writes, TABLE, "model.", twins=TWINS, copies=COPIES, harmless=harmless)
    for name, reads, writes, harmless in (
        ("bart", read_bart, write_bart, ()),
        ("mbart", read_mbart, write_mbart, ()),
        ("marian", read_marian, write_marian, SINUSOIDS),
        ("pegasus", read_pegasus, write_pegasus, SINUSOIDS),
    )
)

__all__ = ["BART", "MARIAN", "MBART", "PEGASUS"]
