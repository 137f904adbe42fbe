"""ALBERT (Lan et al. 2020, arXiv:1909.11942): BERT with a narrow input, and layers that share their weights."""

from typing import Any

from gnomon.checkpoints.hf.families import bert
from gnomon.checkpoints.hf.family import ACTIVATIONS, Family, activation_name, lines
from gnomon.checkpoints.hf.keys import Keys
from gnomon.checkpoints.hf.table import line, module
from gnomon.models import ModelConfig


def read(keys: Keys) -> ModelConfig:
    """The input is projected even where it is as wide as the layers."""
    keys.must("inner_group_num", 1)
    keys.must("position_embedding_type", "absolute")
    head, usual = bert.head_of(keys, "Albert"), "gelu_new"
    keys.data = {"hidden_act": usual, **keys.data}
    head |= {"head_activation": keys.word("hidden_act", ACTIVATIONS, usual)} if head["head"] == "masked" else {}
    return ModelConfig(
        **bert.sizes(keys, head, 0),
        n_types=keys.size("type_vocab_size", default=2),
        d_input=keys.size("embedding_size", default=128),
        distinct_layers=keys.size("num_hidden_groups", default=1),
        **head,
    )


def write(c: ModelConfig) -> dict[str, Any]:
    """As ALBERT."""
    groups = c.n_layers if c.distinct_layers is None else c.distinct_layers
    told: dict[str, Any] = {
        "embedding_size": c.d_model if c.d_input is None else c.d_input,
        "num_hidden_groups": groups,
    }
    told["hidden_act"] = activation_name(c.activation, "gelu_new")
    return {**bert.write(c, "albert", "Albert", 0), **told}


_LAYER, _OURS = "albert.encoder.albert_layer_groups.*.albert_layers.0", "stack.blocks.*"
_ATTENTION = (("query", "q"), ("key", "k"), ("value", "v"), ("dense", "out"))

FAMILY = Family(
    "albert",
    read,
    write,
    lines(
        line("albert.embeddings.word_embeddings.weight", "input.tokens.weight"),
        line("albert.embeddings.position_embeddings.weight", "input.position.weight"),
        line("albert.embeddings.token_type_embeddings.weight", "input.types.weight"),
        module("albert.embeddings.LayerNorm", "input.norm"),
        module("albert.encoder.embedding_hidden_mapping_in", "input.enter"),
        *(module(f"{_LAYER}.attention.{a}", f"{_OURS}.attention.{b}") for a, b in _ATTENTION),
        module(f"{_LAYER}.attention.LayerNorm", f"{_OURS}.around_attention.norm"),
        module(f"{_LAYER}.ffn", f"{_OURS}.ffn.up"),
        module(f"{_LAYER}.ffn_output", f"{_OURS}.ffn.down"),
        module(f"{_LAYER}.full_layer_layer_norm", f"{_OURS}.around_ffn.norm"),
    ),
    prefix="albert.",
    heads={
        "masked": lines(
            module("predictions.dense", "head.transform"),
            module("predictions.LayerNorm", "head.norm"),
            line("predictions.decoder.weight", "head.out.weight"),
            line("predictions.decoder.bias", "head.out.bias", beside="head.out.weight"),
            line("predictions.bias", "head.out.bias"),
        ),
        "pooled": lines(module("albert.pooler", "head.pooler")),
        "labels": lines(module("classifier", "head.out")),
        "classes": lines(module("albert.pooler", "head.pooler"), module("classifier", "head.out")),
    },
    twins={
        "predictions.decoder.weight": "albert.embeddings.word_embeddings.weight",
        "predictions.decoder.bias": "predictions.bias",
    },
    # a count from 0; the second task of pretraining; parts of heads that what is read has no use for
    harmless=(
        r"albert\.embeddings\.position_ids",
        r"sop_classifier\..*",
        r"albert\.pooler\..*",
        r"predictions\..*",
    ),
)

__all__ = ["FAMILY"]
