"""Cohere's Command R7B: Command R with a window in three of four layers; the fourth has no position."""

from collections.abc import Mapping
from typing import Any

from gnomon.checkpoints.gguf.families.command_r import FIXED
from gnomon.checkpoints.gguf.families.command_r import read as read_command_r
from gnomon.checkpoints.gguf.families.command_r import write as write_command_r
from gnomon.checkpoints.gguf.family import Family
from gnomon.checkpoints.gguf.keys import Keys
from gnomon.models import ModelConfig
from gnomon.positions import NoPE, Spec

PERIOD = 4  # every fourth layer sees all


def read(keys: Keys, found: Mapping[str, Any]) -> dict[str, Any]:
    """A layer without a window is not turned."""
    every, window = keys.get("attention.sliding_window_pattern", int, PERIOD), keys.get("attention.sliding_window", int)
    seeing_all = [(layer + 1) % every == 0 for layer in range(found["n_layers"])]
    return read_command_r(keys, found) | {
        "position": tuple(Spec(NoPE) if all_of_it else found["position"] for all_of_it in seeing_all),
        "window": [None if all_of_it else window for all_of_it in seeing_all],
    }


def write(c: ModelConfig) -> dict[str, Any]:
    """The window; which layers have it is the family's."""
    window = next((window for window in c.windows(c.n_layers) if window), None)
    return write_command_r(c) | ({} if window is None else {"attention.sliding_window": window})


FAMILY = Family("cohere2", "rope", FIXED, read, write, rows="interleaved", windows=True, still=True, own_head=False)

__all__ = ["FAMILY"]
