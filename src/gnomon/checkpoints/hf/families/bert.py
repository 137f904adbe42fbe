"""BERT (Devlin et al. 2019, arXiv:1810.04805): an encoder with a head. RoBERTa shares what is here."""

from typing import Any

from gnomon.checkpoints.hf.family import ACTIVATIONS, Family, activation_name, lines
from gnomon.checkpoints.hf.keys import LAYERS, Keys
from gnomon.checkpoints.hf.table import Line, line, module
from gnomon.errors import BadInput, BadValue
from gnomon.models import ModelConfig
from gnomon.positions import get

HEADS = {"ForMaskedLM": "masked", "ForPreTraining": "masked", "Model": "pooled", "ForTokenClassification": "labels"}
HEADS["ForSequenceClassification"] = "classes"
CLASSES = {"masked": "ForMaskedLM", "pooled": "Model", "labels": "ForTokenClassification"}
CLASSES["classes"] = "ForSequenceClassification"


def read_bert(keys: Keys) -> ModelConfig:
    """Positions from row 0."""
    return read(keys, "Bert", 0)


def read(keys: Keys, class_name: str, offset: int) -> ModelConfig:
    """A config of this kind, whose positions begin at row `offset` of the table."""
    keys.must("position_embedding_type", "absolute")
    keys.must("is_decoder", False)
    keys.must("add_cross_attention", False)
    head = head_of(keys, class_name)
    own = {} if class_name != "Bert" else {"head_activation": keys.word("hidden_act", ACTIVATIONS, "gelu")}
    return ModelConfig(
        **sizes(keys, head, offset),
        n_types=keys.size("type_vocab_size", default=2),
        **{**head, **(own if head["head"] == "masked" else {})},
    )


def sizes(keys: Keys, head: dict[str, Any], offset: int) -> dict[str, Any]:
    """What the configs of this kind share, as settings of ours."""
    return {
        "architecture": "encoder-only",
        "causal": False,
        "vocab_size": keys.size("vocab_size"),
        "d_model": keys.size("hidden_size"),
        "n_layers": keys.size("num_hidden_layers", most=LAYERS),
        "n_heads": keys.size("num_attention_heads"),
        "d_ff": keys.size("intermediate_size"),
        "position": get("learned", **({"offset": offset} if offset else {})),
        "placement": "post",
        "input_norm": "layernorm",
        "max_positions": keys.size("max_position_embeddings") - offset,
        "activation": keys.word("hidden_act", ACTIVATIONS, "gelu"),
        "norm_eps": keys.get("layer_norm_eps", float, 1e-12),
        "dropout": keys.get("hidden_dropout_prob", float, 0.1),
        "init_std": keys.get("initializer_range", float, 0.02),
        "tied": keys.get("tie_word_embeddings", bool, True) or head["head"] != "masked",
    }


def head_of(keys: Keys, class_name: str, **others: str) -> dict[str, Any]:
    """What the class in "architectures" asks of the vectors, as settings of ours; others: what it calls otherwise."""
    known = {**HEADS, **others}
    wanted = keys.get("architectures", list, None) or [class_name + "Model"]
    suffix = "Model" if keys.pooling is not None else str(wanted[0]).removeprefix(class_name)
    if suffix not in known:
        raise BadInput(
            f"{keys.file}: {wanted[0]} is not known; of this family {', '.join(class_name + h for h in known)}"
        )
    head = known[suffix]
    if head in ("labels", "classes"):
        named = keys.get("id2label", dict, None)
        n = keys.get("num_labels", int, 2) if named is None else len(named)
        settings = {"head": head, "n_classes": n}
        return settings if head == "labels" else {**settings, "pooling": "first", "pooler": True}
    if head == "masked":
        return {"head": head}
    pooler = keys.pooling is None and any(
        name.endswith(("pooler.dense.weight", "albert.pooler.weight")) for name in keys.names
    )
    return {"head": head, "pooling": keys.pooling or "first", "pooler": pooler}


def write_bert(c: ModelConfig) -> dict[str, Any]:
    """As BERT."""
    return write(c, "bert", "Bert", 0)


def write(c: ModelConfig, name: str, class_name: str, offset: int) -> dict[str, Any]:
    """The config of this kind."""
    if not c.n_types:
        raise BadValue("n_types = 0: the family's code adds a type to each token; build the model with n_types=1")
    return {**write_sizes(c, name, class_name, offset), "type_vocab_size": c.n_types}


def write_sizes(c: ModelConfig, name: str, class_name: str, offset: int) -> dict[str, Any]:
    """What the configs of this kind share."""
    labels = {} if c.n_classes is None else {"id2label": {str(n): f"LABEL_{n}" for n in range(c.n_classes)}}
    return {
        "architectures": [class_name + CLASSES.get(c.head, "Model")],
        "model_type": name,
        "vocab_size": c.vocab_size,
        "hidden_size": c.d_model,
        "num_hidden_layers": c.n_layers,
        "num_attention_heads": c.n_heads,
        "intermediate_size": 4 * c.d_model if c.d_ff is None else c.d_ff,
        "hidden_act": activation_name(c.activation),
        "max_position_embeddings": (c.max_positions or 0) + offset,
        "layer_norm_eps": c.norm_eps,
        "hidden_dropout_prob": c.dropout,
        "attention_probs_dropout_prob": c.dropout,
        "initializer_range": c.init_std,
        "tie_word_embeddings": c.tied,
        **labels,
    }


def body(name: str) -> tuple[Line, ...]:
    """The names of all but the head."""
    layer = f"{name}.encoder.layer.*"
    return lines(
        line(f"{name}.embeddings.word_embeddings.weight", "input.tokens.weight"),
        line(f"{name}.embeddings.position_embeddings.weight", "input.position.weight"),
        line(f"{name}.embeddings.token_type_embeddings.weight", "input.types.weight"),
        module(f"{name}.embeddings.LayerNorm", "input.norm"),
        module(f"{name}.embeddings_project", "input.enter"),
        module(f"{layer}.attention.self.query", "stack.blocks.*.attention.q"),
        module(f"{layer}.attention.self.key", "stack.blocks.*.attention.k"),
        module(f"{layer}.attention.self.value", "stack.blocks.*.attention.v"),
        module(f"{layer}.attention.output.dense", "stack.blocks.*.attention.out"),
        module(f"{layer}.attention.output.LayerNorm", "stack.blocks.*.around_attention.norm"),
        module(f"{layer}.intermediate.dense", "stack.blocks.*.ffn.up"),
        module(f"{layer}.output.dense", "stack.blocks.*.ffn.down"),
        module(f"{layer}.output.LayerNorm", "stack.blocks.*.around_ffn.norm"),
    )


FAMILY = Family(
    "bert",
    read_bert,
    write_bert,
    body("bert"),
    prefix="bert.",
    rank=0,
    heads={
        "masked": lines(
            module("cls.predictions.transform.dense", "head.transform"),
            module("cls.predictions.transform.LayerNorm", "head.norm"),
            line("cls.predictions.decoder.weight", "head.out.weight"),
            line("cls.predictions.decoder.bias", "head.out.bias", beside="head.out.weight"),
            line("cls.predictions.bias", "head.out.bias"),
        ),
        "pooled": lines(module("bert.pooler.dense", "head.pooler")),
        "labels": lines(module("classifier", "head.out")),
        "classes": lines(module("bert.pooler.dense", "head.pooler"), module("classifier", "head.out")),
    },
    twins={
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    # a count from 0; the second task of pretraining; the pooler, where what is read has no use for it; and the bias
    # that an untied head has beside its own
    harmless=(
        r"bert\.embeddings\.position_ids",
        r"cls\.seq_relationship\..*",
        r"bert\.pooler\.dense\..*",
        r"cls\.predictions\.bias",
    ),
    renamed=((".gamma", ".weight"), (".beta", ".bias")),
)

__all__ = ["FAMILY"]
