"""Where the norm sits around a sublayer; it decides the path of the gradient (S19).

PreNorm    x + drop(f(norm(x)))         the identity path is untouched (GPT-2, Llama)
PostNorm   norm(x + drop(f(x)))         the original Transformer; needs warm-up (Xiong et al. 2020, arXiv:2002.04745)
Sandwich   x + drop(norm'(f(norm(x))))  what a sublayer adds keeps its size (Ding et al. 2021, arXiv:2105.13290)
"""

from collections.abc import Callable
from typing import Literal

from torch import nn

from gnomon.errors import unknown
from gnomon.norm import Norm, build_norm
from gnomon.shapes import Float

Placement = Literal["pre", "post", "sandwich"]


class PreNorm(nn.Module):
    """x + drop(f(norm(x)))."""

    def __init__(self, d_model: int, norm: Norm = "layernorm", eps: float = 1e-5, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm, self.drop = build_norm(norm, d_model, eps), nn.Dropout(dropout)

    def forward(self, x: Float, f: Callable[[Float], Float]) -> Float:
        """Wrap the sublayer f around the stream x (B, T, D)."""
        return x + self.branch(x, f)

    def branch(self, x: Float, f: Callable[[Float], Float]) -> Float:
        """What f adds to the stream."""
        return self.drop(f(self.norm(x)))  # type: ignore[no-any-return]


class Sandwich(PreNorm):
    """x + drop(norm'(f(norm(x))))."""

    def __init__(self, d_model: int, norm: Norm = "layernorm", eps: float = 1e-5, dropout: float = 0.0) -> None:
        super().__init__(d_model, norm, eps, dropout)
        self.norm_after = build_norm(norm, d_model, eps)

    def branch(self, x: Float, f: Callable[[Float], Float]) -> Float:
        """What f adds to the stream."""
        return self.drop(self.norm_after(f(self.norm(x))))  # type: ignore[no-any-return]


class PostNorm(nn.Module):
    """norm(x + drop(f(x)))."""

    def __init__(self, d_model: int, norm: Norm = "layernorm", eps: float = 1e-5, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm, self.drop = build_norm(norm, d_model, eps), nn.Dropout(dropout)

    def forward(self, x: Float, f: Callable[[Float], Float]) -> Float:
        """Wrap the sublayer f around the stream x (B, T, D)."""
        return self.norm(x + self.drop(f(x)))  # type: ignore[no-any-return]


Around = PreNorm | PostNorm  #: a Sandwich is a PreNorm
PLACEMENTS: dict[str, type[PreNorm] | type[PostNorm]] = {"pre": PreNorm, "post": PostNorm, "sandwich": Sandwich}


def placement(name: Placement) -> type[PreNorm] | type[PostNorm]:
    """The class for "pre", "post" or "sandwich"."""
    if name not in PLACEMENTS:
        raise unknown("norm placement", name, PLACEMENTS)
    return PLACEMENTS[name]


__all__ = ["PLACEMENTS", "Around", "Placement", "PostNorm", "PreNorm", "Sandwich", "placement"]
