"""Adapters: each makes a Target of one library's models, and asks only what laws need.

An adapter is one file with one class, which takes the model and a seed. ADAPTERS says which library's models it is for.
"""

import importlib
from collections.abc import Mapping
from textwrap import shorten
from typing import Any

from gnomon.audit.adapters.torch_module import Torch
from gnomon.audit.target import Target
from gnomon.errors import BadValue

#: beginning of the name of the module that a model's class, or a base of it, comes from -> file here and class in it.
#: They are imported when such a model comes, so that nobody needs the libraries of the others.
ADAPTERS: Mapping[str, tuple[str, str]] = {
    "gnomon.models.": ("gnomon", "Gnomon"),
    "transformers.": ("transformers", "Transformers"),
    "x_transformers.": ("x_transformers", "XTransformers"),
    "litgpt.": ("litgpt", "LitGPT"),
    "rotary_embedding_torch.": ("rotary_embedding_torch", "RotaryEmbeddingTorch"),
    "positional_encodings.": ("positional_encodings", "PositionalEncodings"),
    "torch.nn.modules.transformer": ("torch_nn", "TorchNN"),
}


def target(model: Any, seed: int = 0) -> Target:
    """The Target for a model: itself if it is one, else by the library its class comes from, else as a plain module or
    function from ids to logits. See Torch for what plain models can say more about themselves.

    Raises BadValue for what is no model at all.
    """
    if isinstance(model, Target):
        return model
    found = _home(type(model))
    if found is not None:
        file, name = found
        adapter: type[Target] = getattr(importlib.import_module(f"{__name__}.{file}"), name)
        return adapter(model, seed=seed)  # type: ignore[call-arg]
    if not callable(model) or isinstance(model, type):
        what = (
            f"the class {model.__name__}: make a model of it first"
            if isinstance(model, type)
            else shorten(repr(model), 60)
        )
        raise BadValue(f"an audit asks a model, or a function from ids (B, T) to logits (B, T, V); got {what}")
    return Torch(model, seed=seed)


def _home(cls: type) -> tuple[str, str] | None:
    """The adapter for the nearest base of a class that comes from a library with one. Stacks of torch.nn take vectors;
    a class of somebody's that is derived from one, with a forward of its own, is a plain module."""
    for base in cls.__mro__:
        for module, adapter in ADAPTERS.items():
            if f"{base.__module__}.".startswith(module):
                stack = adapter[0] == "torch_nn"
                return (
                    None if stack and getattr(cls, "forward", None) is not getattr(base, "forward", None) else adapter
                )
    return None


__all__ = ["ADAPTERS", "Torch", "target"]
