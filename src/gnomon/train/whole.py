"""A tensor that several processes share, whole."""

from typing import Any

from torch import Tensor


def whole_tensor(tensor: Tensor) -> Tensor:
    """A tensor that the processes share, whole; all of them have to ask at once. Any other tensor as it is."""
    full: Any = getattr(tensor, "full_tensor", None)
    return tensor if full is None else full()


__all__ = ["whole_tensor"]
