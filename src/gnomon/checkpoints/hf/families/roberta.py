"""RoBERTa (Liu et al. 2019, arXiv:1907.11692): BERT, other heads, and positions counted from pad_token_id + 1.

The first rows of its table are nobody's.
"""

from typing import Any

from gnomon.checkpoints.hf.families import bert
from gnomon.checkpoints.hf.family import Family, lines
from gnomon.checkpoints.hf.keys import Keys
from gnomon.checkpoints.hf.table import line, module
from gnomon.models import ModelConfig


def roberta(name: str, class_name: str, rank: int = 1) -> Family:
    """A RoBERTa under this model_type, with classes whose names begin so: positions from the row after padding's."""

    def read(keys: Keys) -> ModelConfig:
        return bert.read(keys, class_name, keys.get("pad_token_id", int, 1) + 1)

    def write(c: ModelConfig) -> dict[str, Any]:
        offset = int(c.at_input.options.get("offset", 0))
        return {**bert.write(c, name, class_name, offset), "pad_token_id": offset - 1}

    heads = {
        "masked": lines(
            module("lm_head.dense", "head.transform"),
            module("lm_head.layer_norm", "head.norm"),
            line("lm_head.decoder.weight", "head.out.weight"),
            line("lm_head.decoder.bias", "head.out.bias", beside="head.out.weight"),
            line("lm_head.bias", "head.out.bias"),
        ),
        "pooled": lines(module("roberta.pooler.dense", "head.pooler")),
        "labels": lines(module("classifier", "head.out")),
        "classes": lines(module("classifier.dense", "head.pooler"), module("classifier.out_proj", "head.out")),
    }
    twins = {
        "lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    }
    harmless = (r"roberta\.embeddings\.position_ids", r"roberta\.pooler\.dense\..*", r"lm_head\.bias")
    return Family(
        name,
        read,
        write,
        bert.body("roberta"),
        prefix="roberta.",
        heads=heads,
        twins=twins,
        harmless=harmless,
        rank=rank,
    )


FAMILY = roberta("roberta", "Roberta", rank=0)

__all__ = ["FAMILY"]
