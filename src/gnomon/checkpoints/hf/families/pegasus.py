"""PEGASUS (Zhang et al. 2020, arXiv:1912.08777): BART with norms before, and sinusoids."""

from typing import Any

from gnomon.checkpoints.hf.families.bart import read, relative, write
from gnomon.checkpoints.hf.families.marian import SINUSOIDS
from gnomon.checkpoints.hf.keys import Keys
from gnomon.models import ModelConfig
from gnomon.positions import get


def read_config(keys: Keys) -> ModelConfig:
    """Sinusoids, and norms before."""
    keys.must("static_position_embeddings", True)
    keys.must("normalize_embedding", False)
    return read(keys, before=True, position=get("sinusoidal", table="concatenated"))


def write_config(c: ModelConfig) -> dict[str, Any]:
    """As PEGASUS."""
    return write(c, "pegasus", "PegasusForConditionalGeneration", pad_token_id=0, decoder_start_token_id=0)


FAMILY = relative("pegasus", read_config, write_config, SINUSOIDS)

__all__ = ["FAMILY"]
