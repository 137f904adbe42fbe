"""Marian (Junczys-Dowmunt et al. 2018, arXiv:1804.00344): BART with sinusoids, all sines before all cosines."""

from typing import Any

from gnomon.checkpoints.hf.families.bart import read, relative, write
from gnomon.checkpoints.hf.keys import Keys
from gnomon.models import ModelConfig
from gnomon.positions import get

#: its files hold them as a table too
SINUSOIDS = (r"model\.(encoder|decoder)\.embed_positions\.weight",)


def read_config(keys: Keys) -> ModelConfig:
    """Sinusoids, which its files hold as a table too."""
    keys.must("static_position_embeddings", True)
    keys.must("normalize_embedding", False)
    keys.must("share_encoder_decoder_embeddings", True)
    keys.must("decoder_vocab_size", keys.size("vocab_size"), None)
    return read(keys, position=get("sinusoidal", table="concatenated"))


def write_config(c: ModelConfig) -> dict[str, Any]:
    """As Marian."""
    ids = {"pad_token_id": c.vocab_size - 1, "decoder_start_token_id": c.vocab_size - 1}
    return write(c, "marian", "MarianMTModel", share_encoder_decoder_embeddings=True, **ids)


FAMILY = relative("marian", read_config, write_config, SINUSOIDS)

__all__ = ["FAMILY"]
