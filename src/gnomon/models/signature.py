"""How a model's class shows itself: its settings as a signature, and what each of them means.

A model takes every field of ModelSettings, which is the one place where they are listed and explained.
"""

import inspect
from functools import cache
from typing import Any

from gnomon.models.model_settings import ModelSettings
from gnomon.settings import help_text, parameters_of


@cache
def settings_of(architecture: str) -> inspect.Signature:
    """The sizes, then every other setting by keyword, with the defaults of this architecture."""
    other: dict[str, Any] = {"causal": False} if architecture == "encoder-only" else {}
    parameters = parameters_of(ModelSettings)
    return inspect.Signature([p.replace(default=other.get(p.name, p.default)) for p in parameters])


def document_settings(doc: str) -> str:
    """A class's docstring with what each setting means after it."""
    return f"{inspect.cleandoc(doc)}\n\n{help_text(ModelSettings)}"


class OfTheClass:
    """`__signature__` of a class that takes these settings. Its objects have none: they are called with ids; nor has a
    subclass with a constructor of its own."""

    def __init__(self, constructor: Any) -> None:
        self.constructor = constructor

    def __get__(self, model: object, cls: Any) -> inspect.Signature:
        if model is not None or cls.__init__ is not self.constructor:
            raise AttributeError("__signature__")
        return settings_of(getattr(cls, "architecture", ""))


__all__ = ["OfTheClass", "document_settings", "settings_of"]
