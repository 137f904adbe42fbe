"""EXAONE 4 (LG AI Research 2025, arXiv:2507.11407): OLMo 2 with norms of each head, and no position in layers that see
all where others have a window."""

from typing import Any

from gnomon.checkpoints.hf.families.llama import is_sliding, one_or_list, one_window, sliding_keys, width
from gnomon.checkpoints.hf.families.llama import read as read_llama
from gnomon.checkpoints.hf.families.llama import write as write_llama
from gnomon.checkpoints.hf.families.olmo2 import norms_behind
from gnomon.checkpoints.hf.keys import LAYERS, Keys
from gnomon.checkpoints.hf.rope import ROTARY, read_rope
from gnomon.errors import BadInput
from gnomon.models import ModelConfig
from gnomon.positions import NoPE, Spec

WINDOW = 4096  # the family's own


def read(keys: Keys) -> ModelConfig:
    """layer_types has to be there; sliding_window_pattern only says how it was made."""
    d_head, n_layers = width(keys), keys.size("num_hidden_layers", most=LAYERS)
    sliding = [is_sliding(keys, kind) for kind in keys.per_layer("layer_types", n_layers)]
    window = keys.size("sliding_window", default=None if "sliding_window" in keys.data else WINDOW)
    if window is None and any(sliding):
        raise BadInput(f"{keys.file}: layer_types names layers with a window, and sliding_window is null")
    rope = read_rope(keys, d_head, ROTARY["exaone4"])
    return read_llama(
        keys,
        ROTARY["exaone4"],
        d_head,
        placement="branch",
        qk_norm=True,
        position=one_or_list([rope if on or window is None else Spec(NoPE) for on in sliding]),
        window=one_window([window if on else None for on in sliding]),
    )


def write(c: ModelConfig) -> dict[str, Any]:
    """As EXAONE 4; a window that no layer has still says that the layers without have no position."""
    config = sliding_keys(c)
    if config["sliding_window"] is None and any(spec.name != "rope" for spec in c.per_layer(c.n_layers)):
        config["sliding_window"] = WINDOW
    del config["use_sliding_window"]
    return write_llama(c, "exaone4", "Exaone4ForCausalLM", ROTARY["exaone4"], **config)


FAMILY = norms_behind("exaone4", read, write)

__all__ = ["FAMILY"]
