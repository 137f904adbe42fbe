"""What an encoding's class says about it beside its name: its formula, its properties, and which others share them."""

import inspect
import re
import sys
from collections.abc import Mapping
from typing import Any

import torch

from gnomon.errors import BadValue
from gnomon.positions.base import PositionEncoding, kind_of
from gnomon.positions.registry import encoding, names
from gnomon.positions.spec import Spec, parameters_of

#: of the model whose parameters are counted
SIZES: Mapping[str, int] = {"d_model": 512, "d_head": 64, "n_heads": 8, "n_layers": 6, "max_positions": 2048}
PLACE = 3  #: how many other properties the place of action is worth


def formula(cls: type[PositionEncoding]) -> str:
    """The formula of a method: its `formula`, else the first indented lines of the docstring of its module or class."""
    module = sys.modules.get(cls.__module__)
    of_class = inspect.cleandoc(cls.__dict__.get("__doc__") or "")
    texts = [cls.formula, *(_indented_lines(doc) for doc in (getattr(module, "__doc__", None), of_class))]
    return next((text for text in texts if text), "")


def _indented_lines(doc: str | None) -> str:
    """The first lines that are indented, until one that is not."""
    found = re.search(r"^(?: {4,}\S.*(?:\n|\Z))+", doc or "", re.MULTILINE)
    return inspect.cleandoc(f"\n{found.group()}") if found else ""


def parameters(cls: type[PositionEncoding]) -> int | None:
    """How many numbers it learns at SIZES; None for an encoding that these sizes are not enough to build."""
    try:
        with torch.device("meta"):
            module = Spec(cls).build(causal=True, **SIZES)
    except BadValue:
        return None
    return sum(p.numel() for p in module.parameters())


def properties(cls: type[PositionEncoding]) -> dict[str, Any]:
    """What can be told apart without training: where it acts, what it knows of positions, whether it is for causal
    attention only, whether it learns, whether its table ends, and whether its pairs turn."""
    return {
        "acts": cls.acts,
        "kind": kind_of(cls),
        "one_sided": bool(cls.one_sided),
        "learns": bool(parameters(cls)),
        "ends": "max_positions" in parameters_of(cls),
        "turns": cls.frequencies is not PositionEncoding.frequencies,
    }


def nearest(cls: type[PositionEncoding], count: int = 3) -> list[tuple[type[PositionEncoding], list[str]]]:
    """The known encodings that share most properties, the place of action above all, nearest first, each with the
    properties in which it differs."""
    mine = properties(cls)
    found = []
    for name in names():
        other = encoding(name)
        if other is not cls:
            theirs = properties(other)
            found.append((other, [key for key in mine if mine[key] != theirs[key]]))
    return sorted(found, key=lambda item: (sum(PLACE if key == "acts" else 1 for key in item[1]), item[0].name))[:count]


__all__ = ["SIZES", "formula", "nearest", "parameters", "properties"]
