"""mT5 (Xue et al. 2021, arXiv:2010.11934): T5 1.1 with another vocabulary."""

from typing import Any

from gnomon.checkpoints.hf.families.t5 import read, relative, write
from gnomon.checkpoints.hf.keys import Keys
from gnomon.models import ModelConfig


def read_config(keys: Keys) -> ModelConfig:
    """Never scaled. That library takes every file for tied, whatever it says."""
    keys.get("tie_word_embeddings", bool, True)
    return read(keys, False, "gated-gelu")


def write_config(c: ModelConfig) -> dict[str, Any]:
    """As mT5."""
    return write(c, "mt5", "MT5ForConditionalGeneration", tie_word_embeddings=True)


FAMILY = relative("mt5", read_config, write_config)

__all__ = ["FAMILY"]
