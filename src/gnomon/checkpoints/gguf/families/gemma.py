"""Gemma: a wide gated network, token vectors times the root of their width, norms with their 1 added."""

from collections.abc import Mapping
from typing import Any

from gnomon.checkpoints.gguf.family import PLAIN, Family
from gnomon.checkpoints.gguf.keys import Keys

FIXED = {
    **PLAIN,
    "norm": "rmsnorm_plus_one",
    "activation": "gelu_tanh",
    "gated": True,
    "embed_scale": "rounded sqrt",
}


def read(keys: Keys, found: Mapping[str, Any]) -> dict[str, Any]:
    """No keys of its own."""
    return {}


FAMILY = Family("gemma", "rope", FIXED, read, widths=True, own_head=False)

__all__ = ["FAMILY"]
