"""M2M-100 (Fan et al. 2020, arXiv:2010.11125) and NLLB (arXiv:2207.04672): BART with norms before, and sinusoids that
begin in row 2. The language to write in is the first token after the start."""

from typing import Any

from gnomon.checkpoints.hf.families.bart import TABLE as BART
from gnomon.checkpoints.hf.families.bart import read, relative, write
from gnomon.checkpoints.hf.keys import Keys
from gnomon.errors import BadInput
from gnomon.models import ModelConfig
from gnomon.positions import get

#: a table of sinusoids that older files carry along
SINUSOIDS = (r"model\.(encoder|decoder)\.embed_positions\.weights?",)


def read_config(keys: Keys) -> ModelConfig:
    """Rows are counted from the one after padding's."""
    if keys.size("d_model") % 2:
        raise BadInput(f"{keys.file}: d_model is odd, where this family's sinusoids end in a zero")
    keys.must("normalize_embedding", False)
    offset = keys.get("pad_token_id", int, 1) + 1
    position = get("sinusoidal", table="tensor2tensor", offset=offset)
    keys.data = {"activation_function": "relu", "scale_embedding": True, **keys.data}  # the family's own defaults
    return read(keys, before=True, position=position)


def write_config(c: ModelConfig) -> dict[str, Any]:
    """As M2M-100."""
    marks = {"pad_token_id": int(c.at_input.options.get("offset", 0)) - 1, "decoder_start_token_id": 2}
    return write(c, "m2m_100", "M2M100ForConditionalGeneration", **marks)


#: there is no number per token
TABLE = tuple(entry for entry in BART if entry.theirs != "final_logits_bias")
FAMILY = relative("m2m_100", read_config, write_config, SINUSOIDS, TABLE)

__all__ = ["FAMILY"]
