"""DistilBERT (Sanh et al. 2019, arXiv:1910.01108): BERT of half the depth, without types of tokens."""

from typing import Any

from gnomon.checkpoints.hf.families.bert import CLASSES, head_of
from gnomon.checkpoints.hf.family import ACTIVATIONS, Family, activation_name, lines
from gnomon.checkpoints.hf.keys import LAYERS, Keys
from gnomon.checkpoints.hf.table import line, module
from gnomon.models import ModelConfig
from gnomon.positions import get

EPS = 1e-12  # in its code; no config says it


def read(keys: Keys) -> ModelConfig:
    """The layer before its classes ends in a ReLU; that before its masked tokens in the model's own activation."""
    head, activation = head_of(keys, "DistilBert"), keys.word("activation", ACTIVATIONS, "gelu")
    head["head_activation"] = {"masked": activation, "classes": "relu"}.get(head["head"])
    return ModelConfig(
        architecture="encoder-only",
        causal=False,
        vocab_size=keys.size("vocab_size"),
        d_model=keys.size("dim"),
        n_layers=keys.size("n_layers", most=LAYERS),
        n_heads=keys.size("n_heads"),
        d_ff=keys.size("hidden_dim"),
        position=get("learned"),
        placement="post",
        input_norm="layernorm",
        activation=activation,
        norm_eps=EPS,
        max_positions=keys.size("max_position_embeddings"),
        dropout=keys.get("dropout", float, 0.1),
        init_std=keys.get("initializer_range", float, 0.02),
        tied=keys.get("tie_word_embeddings", bool, True) or head["head"] != "masked",
        **head,
    )


def write(c: ModelConfig) -> dict[str, Any]:
    """As DistilBERT."""
    labels = {} if c.n_classes is None else {"id2label": {str(n): f"LABEL_{n}" for n in range(c.n_classes)}}
    return {
        "architectures": ["DistilBert" + CLASSES.get(c.head, "Model")],
        "model_type": "distilbert",
        "vocab_size": c.vocab_size,
        "dim": c.d_model,
        "n_layers": c.n_layers,
        "n_heads": c.n_heads,
        "hidden_dim": 4 * c.d_model if c.d_ff is None else c.d_ff,
        "activation": activation_name(c.activation),
        "max_position_embeddings": c.max_positions,
        "dropout": c.dropout,
        "attention_dropout": c.dropout,
        "initializer_range": c.init_std,
        "tie_word_embeddings": c.tied,
        **labels,
    }


_LAYER = "distilbert.transformer.layer.*"
_ATTENTION = (("q_lin", "q"), ("k_lin", "k"), ("v_lin", "v"), ("out_lin", "out"))

FAMILY = Family(
    "distilbert",
    read,
    write,
    lines(
        line("distilbert.embeddings.word_embeddings.weight", "input.tokens.weight"),
        line("distilbert.embeddings.position_embeddings.weight", "input.position.weight"),
        module("distilbert.embeddings.LayerNorm", "input.norm"),
        *(module(f"{_LAYER}.attention.{a}", f"stack.blocks.*.attention.{b}") for a, b in _ATTENTION),
        module(f"{_LAYER}.sa_layer_norm", "stack.blocks.*.around_attention.norm"),
        module(f"{_LAYER}.ffn.lin1", "stack.blocks.*.ffn.up"),
        module(f"{_LAYER}.ffn.lin2", "stack.blocks.*.ffn.down"),
        module(f"{_LAYER}.output_layer_norm", "stack.blocks.*.around_ffn.norm"),
    ),
    prefix="distilbert.",
    heads={
        "masked": lines(
            module("vocab_transform", "head.transform"),
            module("vocab_layer_norm", "head.norm"),
            line("vocab_projector.weight", "head.out.weight"),
            line("vocab_projector.bias", "head.out.bias"),
        ),
        "labels": lines(module("classifier", "head.out")),
        "classes": lines(module("pre_classifier", "head.pooler"), module("classifier", "head.out")),
    },
    twins={"vocab_projector.weight": "distilbert.embeddings.word_embeddings.weight"},
    harmless=(r"vocab_(transform|layer_norm|projector)\..*",),  # of the head for masked tokens, where another is read
)

__all__ = ["FAMILY"]
