"""Adapters: each makes a Target of one library's models, and asks only what laws need."""

from typing import Any

from gnomon.audit.outside.adapters.torch_module import Torch
from gnomon.audit.outside.target import Target


def target(model: Any, seed: int = 0) -> Target:
    """The Target for a model: itself if it is one, else by the library its class comes from, else as a plain module or
    function from ids to logits. See Torch for what plain models can say more about themselves."""
    if isinstance(model, Target):
        return model
    return Torch(model, seed=seed)


__all__ = ["Torch", "target"]
