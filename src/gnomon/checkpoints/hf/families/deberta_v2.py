"""DeBERTa, versions 2 and 3 (He et al. 2021, arXiv:2006.03654 and arXiv:2111.09543): BERT with disentangled attention.

Position is in the scores alone: one table of distances, through a norm in version 3, projected by each layer's queries
and keys. Models with a convolution after the first layer, with projections of the table's own, or with absolute
positions at the input besides are refused by name. Version 3 was trained with a generator and heads of its own, which
its files hold beside the body.
"""

from typing import Any

from gnomon.checkpoints.hf.families.bert import CLASSES, head_of
from gnomon.checkpoints.hf.family import ACTIVATIONS, Family, activation_name, lines
from gnomon.checkpoints.hf.keys import LAYERS, Keys
from gnomon.checkpoints.hf.table import line, module
from gnomon.errors import BadInput
from gnomon.models import ModelConfig
from gnomon.positions import Spec, get

TERMS = ("c2p", "p2c")


def read(keys: Keys) -> ModelConfig:
    """What its library takes as absent is what its code does without the key, not what models of it have."""
    head, activation = head_of(keys, "DebertaV2"), keys.word("hidden_act", ACTIVATIONS, "gelu")
    classes = keys.word("pooler_hidden_act", ACTIVATIONS, "gelu")
    head["head_activation"] = {"masked": activation, "classes": classes}.get(head["head"])
    d_model, n_heads = keys.size("hidden_size"), keys.size("num_attention_heads")
    for name, without, only in (
        ("relative_attention", False, True),
        ("position_biased_input", True, False),
        ("share_att_key", False, True),
        ("legacy", True, True),
    ):
        if keys.get(name, bool, without) is not only:
            raise BadInput(f"{keys.file}: Gnomon reads this family only with {name} = {str(only).lower()}")
    keys.must("conv_kernel_size", 0)
    keys.must("embedding_size", d_model)
    keys.must("pooler_hidden_size", d_model)
    keys.must("attention_head_size", d_model // n_heads)
    return ModelConfig(
        architecture="encoder-only",
        causal=False,
        vocab_size=keys.size("vocab_size"),
        d_model=d_model,
        n_layers=keys.size("num_hidden_layers", most=LAYERS),
        n_heads=n_heads,
        d_ff=keys.size("intermediate_size"),
        position=_position(keys),
        placement="post",
        input_norm="layernorm",
        activation=activation,
        norm_eps=keys.get("layer_norm_eps", float, 1e-7),
        max_positions=keys.size("max_position_embeddings"),
        n_types=keys.get("type_vocab_size", int, 0),
        dropout=keys.get("hidden_dropout_prob", float, 0.1),
        init_std=keys.get("initializer_range", float, 0.02),
        tied=keys.get("tie_word_embeddings", bool, True) or head["head"] != "masked",
        **head,
    )


def _position(keys: Keys) -> Spec:
    """The encoding, by the words of its library: a length below 1 is that of the model, -1 buckets are none."""
    listed = isinstance(keys.data.get("pos_att_type"), list)
    said = keys.get("pos_att_type", list) if listed else keys.get("pos_att_type", str).lower().split("|")
    terms = [str(term).strip() for term in said]
    if not terms or not set(terms) <= set(TERMS):
        raise BadInput(f"{keys.file}: pos_att_type has c2p, p2c or both, got {said!r}")
    furthest, buckets = keys.get("max_relative_positions", int, -1), keys.get("position_buckets", int, -1)
    furthest = keys.size("max_position_embeddings") if furthest < 1 else furthest
    if buckets > 0 and furthest <= buckets // 2 + 1:
        raise BadInput(f"{keys.file}: {buckets} position_buckets need more distances than {furthest}")
    norm = [word.strip() for word in keys.get("norm_rel_ebd", str, "none").lower().split("|")]
    return get(
        "deberta",
        buckets=buckets if buckets > 0 else None,
        max_distance=furthest,
        c2p="c2p" in terms,
        p2c="p2c" in terms,
        norm="layer_norm" in norm,
        norm_eps=keys.get("layer_norm_eps", float, 1e-7),
    )


def write(c: ModelConfig) -> dict[str, Any]:
    """As DeBERTa v2."""
    labels = {} if c.n_classes is None else {"id2label": {str(n): f"LABEL_{n}" for n in range(c.n_classes)}}
    usual = {"buckets": 256, "max_distance": 512, "c2p": True, "p2c": True, "norm": True, "share": True}
    own = {**usual, **c.per_layer(c.n_layers)[0].options}
    classes = {"pooler_hidden_act": activation_name(c.head_activation or "tanh")} if c.head == "classes" else {}
    return {
        "architectures": ["DebertaV2" + CLASSES.get(c.head, "Model")],
        "model_type": "deberta-v2",
        "vocab_size": c.vocab_size,
        "hidden_size": c.d_model,
        "num_hidden_layers": c.n_layers,
        "num_attention_heads": c.n_heads,
        "intermediate_size": 4 * c.d_model if c.d_ff is None else c.d_ff,
        "hidden_act": activation_name(c.activation),
        "layer_norm_eps": c.norm_eps,
        "type_vocab_size": c.n_types,
        "max_position_embeddings": c.max_positions or own["max_distance"],
        "relative_attention": True,
        "max_relative_positions": own["max_distance"],
        "position_buckets": own["buckets"] or -1,
        "pos_att_type": "|".join(term for term in TERMS if own[term]),
        "share_att_key": own["share"],
        "norm_rel_ebd": "layer_norm" if own["norm"] else "none",
        "position_biased_input": False,
        "legacy": True,
        "hidden_dropout_prob": c.dropout,
        "attention_probs_dropout_prob": c.dropout,
        "initializer_range": c.init_std,
        "tie_word_embeddings": c.tied,
        **classes,
        **labels,
    }


_LAYER = "deberta.encoder.layer.*"

FAMILY = Family(
    "deberta-v2",
    read,
    write,
    lines(
        line("deberta.embeddings.word_embeddings.weight", "input.tokens.weight"),
        line("deberta.embeddings.token_type_embeddings.weight", "input.types.weight"),
        module("deberta.embeddings.LayerNorm", "input.norm"),
        line("deberta.encoder.rel_embeddings.weight", "stack.positions.0.weight"),
        module("deberta.encoder.LayerNorm", "stack.positions.0.norm"),
        module(f"{_LAYER}.attention.self.query_proj", "stack.blocks.*.attention.q"),
        module(f"{_LAYER}.attention.self.key_proj", "stack.blocks.*.attention.k"),
        module(f"{_LAYER}.attention.self.value_proj", "stack.blocks.*.attention.v"),
        module(f"{_LAYER}.attention.output.dense", "stack.blocks.*.attention.out"),
        module(f"{_LAYER}.attention.output.LayerNorm", "stack.blocks.*.around_attention.norm"),
        module(f"{_LAYER}.intermediate.dense", "stack.blocks.*.ffn.up"),
        module(f"{_LAYER}.output.dense", "stack.blocks.*.ffn.down"),
        module(f"{_LAYER}.output.LayerNorm", "stack.blocks.*.around_ffn.norm"),
    ),
    prefix="deberta.",
    heads={
        "masked": lines(
            module("cls.predictions.transform.dense", "head.transform"),
            module("cls.predictions.transform.LayerNorm", "head.norm"),
            line("cls.predictions.decoder.weight", "head.out.weight"),
            line("cls.predictions.decoder.bias", "head.out.bias", beside="head.out.weight"),
            line("cls.predictions.bias", "head.out.bias"),
        ),
        "labels": lines(module("classifier", "head.out")),
        "classes": lines(module("pooler.dense", "head.pooler"), module("classifier", "head.out")),
    },
    twins={
        "cls.predictions.decoder.weight": "deberta.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    # a count from 0; the heads of pretraining beside a body; absolute positions that only their decoder has; and the
    # bias that an untied head has beside its own
    harmless=(
        r"deberta\.embeddings\.position_ids",
        r"(lm|mask)_predictions\..*",
        r"cls\.predictions\.bias",
        r"deberta\.embeddings\.position_embeddings\.weight",
    ),
)

__all__ = ["FAMILY"]
