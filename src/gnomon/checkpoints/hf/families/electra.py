"""ELECTRA (Clark et al. 2020, arXiv:2003.10555): BERT whose input may be narrower than its layers, and no pooler."""

from typing import Any

from gnomon.checkpoints.hf.families import bert
from gnomon.checkpoints.hf.family import Family, lines
from gnomon.checkpoints.hf.keys import Keys
from gnomon.checkpoints.hf.table import line, module
from gnomon.models import ModelConfig


def read(keys: Keys) -> ModelConfig:
    """A discriminator (ForPreTraining) is read as the body that it is used as."""
    keys.must("position_embedding_type", "absolute")
    head = bert.head_of(keys, "Electra", ForPreTraining="pooled")
    width = keys.size("embedding_size", default=128)
    head |= {"head_activation": "gelu"} if head["head"] in ("masked", "classes") else {}
    return ModelConfig(
        **bert.sizes(keys, head, 0),
        n_types=keys.size("type_vocab_size", default=2),
        d_input=None if width == keys.size("hidden_size") else width,
        **head,
    )


def write(c: ModelConfig) -> dict[str, Any]:
    """As ELECTRA."""
    return {**bert.write(c, "electra", "Electra", 0), "embedding_size": c.d_model if c.d_input is None else c.d_input}


FAMILY = Family(
    "electra",
    read,
    write,
    bert.body("electra"),
    prefix="electra.",
    heads={
        "masked": lines(
            module("generator_predictions.dense", "head.transform"),
            module("generator_predictions.LayerNorm", "head.norm"),
            line("generator_lm_head.weight", "head.out.weight"),
            line("generator_lm_head.bias", "head.out.bias"),
        ),
        "labels": lines(module("classifier", "head.out")),
        "classes": lines(module("classifier.dense", "head.pooler"), module("classifier.out_proj", "head.out")),
    },
    twins={"generator_lm_head.weight": "electra.embeddings.word_embeddings.weight"},
    harmless=(
        r"electra\.embeddings\.position_ids",
        r"(discriminator|generator)_predictions\..*",
        r"generator_lm_head\..*",
    ),
)

__all__ = ["FAMILY"]
