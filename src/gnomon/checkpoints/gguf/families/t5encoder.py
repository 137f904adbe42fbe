"""The encoder of a T5 alone, which gives a vector for each text."""

from collections.abc import Mapping
from typing import Any

from gnomon.checkpoints.gguf.families.t5 import FIXED, OUT, read_stack, write_stack
from gnomon.checkpoints.gguf.family import Family
from gnomon.checkpoints.gguf.keys import Keys
from gnomon.checkpoints.gguf.pooling import ENCODER, read_pooling, write_pooling
from gnomon.models import ModelConfig


def read(keys: Keys, found: Mapping[str, Any]) -> dict[str, Any]:
    """A T5's stack and a pooling."""
    return {**read_stack(keys, found), **read_pooling(keys)}


def write(c: ModelConfig) -> dict[str, Any]:
    """The same as keys."""
    return {**write_stack(c), **write_pooling(c)}


FAMILY = Family(
    "t5encoder",
    "t5",
    {**FIXED, **ENCODER},
    read,
    write,
    widths=True,
    renamed=lambda names: OUT,
    stacks={"stack": "enc."},
)

__all__ = ["FAMILY"]
