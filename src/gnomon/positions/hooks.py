"""What the hooks of an encoding take and give: tables, and the queries or keys of one layer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch

from gnomon.layout import Layout
from gnomon.shapes import Float

Acts = Literal["nowhere", "input", "rotation", "score", "attention"]
Tables = tuple[Float, ...] | None
Projection = Callable[[Float], Float]  #: (B, T, D) -> (B, H, T, C), as a layer projects its tokens


@dataclass(frozen=True, eq=False)
class Side:
    """The queries or the keys of one layer.

    x      their vectors (B, H, T, C)
    at     where they sit
    state  what the encoding keeps of their tokens (B, N, T, W), if it keeps anything
    lag    of queries: how many keys follow that of the last one, where both sides count up by one in time; distances
           are then known without looking at positions, if these are dense. None: not known
    """

    x: Float
    at: Layout
    state: Float | None = None
    lag: int | None = None


def of_layer(table: Float, n: int) -> Float:
    """Entry n of a parameter that has one for each layer. Where no gradient is kept it wants none: hooks of torch's
    that watch modules stumble over a view that does."""
    return table[n] if torch.is_grad_enabled() else table[n].detach()


def position_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which positions are computed for tensors of `dtype`: float64 for float64, else float32."""
    return torch.float64 if dtype == torch.float64 else torch.float32


__all__ = ["Acts", "Projection", "Side", "Tables", "of_layer", "position_dtype"]
