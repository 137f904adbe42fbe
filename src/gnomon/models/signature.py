"""How a model's class shows itself: its settings as a signature, and what each of them means.

A model takes every field of ModelConfig, which is the one place where they are listed and explained.
"""

import inspect
from dataclasses import MISSING, fields
from functools import cache
from typing import Any

from gnomon.models.config import ModelConfig, Settings


@cache
def settings_of(architecture: str) -> inspect.Signature:
    """The sizes, then every other field of ModelConfig by keyword, with the defaults of this architecture."""
    other: dict[str, Any] = {"position": "rope"} | ({"causal": False} if architecture == "encoder-only" else {})
    notations = {f.name: f.type for f in fields(ModelConfig)} | dict(Settings.__annotations__)
    parameters = [
        inspect.Parameter(
            f.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD if f.default is f.default_factory is MISSING else _KEYWORD,
            default=other.get(f.name, inspect.Parameter.empty if f.default is MISSING else f.default),
            annotation=notations[f.name],
        )
        for f in fields(ModelConfig)
        if f.name != "architecture"
    ]
    return inspect.Signature(parameters)


_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def explained(doc: str) -> str:
    """A class's docstring with what ModelConfig says about each setting after it."""
    return f"{inspect.cleandoc(doc)}\n\n{inspect.cleandoc(ModelConfig.__doc__ or '').partition(chr(10) * 2)[2]}"


class OfTheClass:
    """`__signature__` of a class that takes these settings. Its objects have none: they are called with ids; nor has a
    subclass with a constructor of its own."""

    def __init__(self, constructor: Any) -> None:
        self.constructor = constructor

    def __get__(self, model: object, cls: Any) -> inspect.Signature:
        if model is not None or cls.__init__ is not self.constructor:
            raise AttributeError("__signature__")
        return settings_of(getattr(cls, "architecture", ""))


__all__ = ["OfTheClass", "explained", "settings_of"]
