"""Models on disk: our run folders, Hugging Face folders and GGUF files, loaded by one function."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gnomon.checkpoints.conversion import convert as convert
    from gnomon.checkpoints.hf import save_hf as save_hf
    from gnomon.checkpoints.loading import find as find
    from gnomon.checkpoints.loading import load as load
    from gnomon.checkpoints.native import save_model as save_model

#: public name -> where it lives; nothing is imported before it is asked for, so that `pull` does not wait for torch
_HOMES = {"convert": "conversion", "find": "loading", "load": "loading", "save_hf": "hf", "save_model": "native"}

__all__ = ["convert", "find", "load", "save_hf", "save_model"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gnomon.checkpoints' has no attribute {name!r}")
    return getattr(importlib.import_module(f"gnomon.checkpoints.{_HOMES[name]}"), name)
