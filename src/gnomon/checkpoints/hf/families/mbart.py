"""mBART (Liu et al. 2020, arXiv:2001.08210): BART with norms before, and one after each stack."""

from typing import Any

from gnomon.checkpoints.hf.families.bart import read_bart, relative, write
from gnomon.checkpoints.hf.keys import Keys
from gnomon.models import ModelConfig


def read_config(keys: Keys) -> ModelConfig:
    """As BART, with norms before."""
    return read_bart(keys, before=True)


def write_config(c: ModelConfig) -> dict[str, Any]:
    """As mBART."""
    return write(c, "mbart", "MBartForConditionalGeneration")


FAMILY = relative("mbart", read_config, write_config)

__all__ = ["FAMILY"]
