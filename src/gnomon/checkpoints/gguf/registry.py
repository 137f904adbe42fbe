"""The families of llama.cpp, in the order in which they are asked to hold a model."""

from collections.abc import Mapping

from gnomon.checkpoints.discovery import discover_families
from gnomon.checkpoints.gguf import families
from gnomon.checkpoints.gguf.family import Family


def find_families() -> dict[str, Family]:
    """Every family by llama.cpp's name for it."""
    return {family.arch: family for family in discover_families(families).values()}


FAMILIES: Mapping[str, Family] = find_families()

__all__ = ["FAMILIES", "find_families"]
