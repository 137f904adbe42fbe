"""ERNIE 4.5: Llama whose neighbouring channels turn together."""

from collections.abc import Mapping
from typing import Any

from gnomon.checkpoints.gguf.family import LLAMA, Family
from gnomon.checkpoints.gguf.keys import Keys


def read(keys: Keys, found: Mapping[str, Any]) -> dict[str, Any]:
    """No keys of its own."""
    return {}


FAMILY = Family("ernie4_5", "rope", LLAMA, read, rows="interleaved", widths=True, rank=4)

__all__ = ["FAMILY"]
