"""MPNet (Song et al. 2020, arXiv:2004.09297): RoBERTa without types of tokens, whose scores have T5's biases too."""

from typing import Any

from gnomon.checkpoints.hf.families import bert
from gnomon.checkpoints.hf.family import Family, lines
from gnomon.checkpoints.hf.keys import Keys
from gnomon.checkpoints.hf.table import line, module
from gnomon.models import ModelConfig
from gnomon.positions import get

OFFSET, BUCKETS = 2, 32  # in its code, whatever the config says


def read(keys: Keys) -> ModelConfig:
    """One table of biases for all layers."""
    keys.must("relative_attention_num_buckets", BUCKETS)
    keys.must("position_embedding_type", "absolute")
    head = bert.head_of(keys, "MPNet")
    sizes = bert.sizes(keys, head, OFFSET)
    return ModelConfig(**{**sizes, "position": get("t5"), "input_position": sizes["position"], **head})


def write(c: ModelConfig) -> dict[str, Any]:
    """As MPNet."""
    marks = {"pad_token_id": 1, "relative_attention_num_buckets": BUCKETS}
    return {**bert.write_sizes(c, "mpnet", "MPNet", OFFSET), **marks}


_ATTENTION = (("q", "q"), ("k", "k"), ("v", "v"), ("o", "out"))
_LAYER, _OURS = "mpnet.encoder.layer.*", "stack.blocks.*"

FAMILY = Family(
    "mpnet",
    read,
    write,
    lines(
        line("mpnet.embeddings.word_embeddings.weight", "input.tokens.weight"),
        line("mpnet.embeddings.position_embeddings.weight", "input.position.weight"),
        module("mpnet.embeddings.LayerNorm", "input.norm"),
        line("mpnet.encoder.relative_attention_bias.weight", "stack.positions.0.weight"),
        *(module(f"{_LAYER}.attention.attn.{a}", f"{_OURS}.attention.{b}") for a, b in _ATTENTION),
        module(f"{_LAYER}.attention.LayerNorm", f"{_OURS}.around_attention.norm"),
        module(f"{_LAYER}.intermediate.dense", f"{_OURS}.ffn.up"),
        module(f"{_LAYER}.output.dense", f"{_OURS}.ffn.down"),
        module(f"{_LAYER}.output.LayerNorm", f"{_OURS}.around_ffn.norm"),
    ),
    prefix="mpnet.",
    heads={
        "masked": lines(
            module("lm_head.dense", "head.transform"),
            module("lm_head.layer_norm", "head.norm"),
            line("lm_head.decoder.weight", "head.out.weight"),
            line("lm_head.decoder.bias", "head.out.bias", beside="head.out.weight"),
            line("lm_head.bias", "head.out.bias"),
        ),
        "pooled": lines(module("mpnet.pooler.dense", "head.pooler")),
        "labels": lines(module("classifier", "head.out")),
        "classes": lines(module("classifier.dense", "head.pooler"), module("classifier.out_proj", "head.out")),
    },
    twins={
        "lm_head.decoder.weight": "mpnet.embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    },
    harmless=(r"mpnet\.embeddings\.position_ids", r"mpnet\.pooler\.dense\..*", r"lm_head\..*"),
)

__all__ = ["FAMILY"]
