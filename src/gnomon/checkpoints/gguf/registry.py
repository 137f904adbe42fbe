"""The families of llama.cpp, in the order in which they are asked to hold a model."""

from collections.abc import Mapping

from gnomon.checkpoints.discovery import by_file
from gnomon.checkpoints.gguf import families
from gnomon.checkpoints.gguf.family import Family


def found() -> dict[str, Family]:
    """Every family by llama.cpp's name for it."""
    return {family.arch: family for family in by_file(families).values()}


FAMILIES: Mapping[str, Family] = found()

__all__ = ["FAMILIES", "found"]
