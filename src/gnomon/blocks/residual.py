"""Where the norm sits around a sublayer; it decides the path of the gradient.

PreNorm    x + drop(f(norm(x)))         the identity path is untouched (GPT-2, Llama)
PostNorm   norm(x + drop(f(x)))         the original Transformer; needs warm-up (Xiong et al. 2020, arXiv:2002.04745)
Sandwich   x + drop(norm'(f(norm(x))))  what a sublayer adds keeps its size (Ding et al. 2021, arXiv:2105.13290)
BranchNorm x + drop(norm(f(x)))         the same without the norm before (Liu et al. 2022, arXiv:2111.09883, Swin V2;
                                        OLMo 2, arXiv:2501.00656, section 3.2)

What is added may be scaled: x + scale * drop(...) (Granite).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

from torch import nn

from gnomon.errors import unknown
from gnomon.kinds import Setting
from gnomon.norm import Norm, NormSettings, build_norm
from gnomon.settings import SharedSettings
from gnomon.shapes import Float

Placement = Literal["pre", "post", "sandwich", "branch"]
Residual = Literal["sequential", "parallel", "one norm"]


@dataclass(frozen=True, kw_only=True)
class ResidualSettings(NormSettings, SharedSettings):
    """Residual stream"""

    placement: Annotated[
        Placement, Setting("where the norm of a sublayer sits: before it, after the sum, both sides, or after it")
    ] = "pre"
    residual: Annotated[
        Residual,
        Setting(
            "attention, then feed-forward; 'parallel': side by side; 'one norm': and behind one norm",
            source="GPT-NeoX, arXiv:2204.06745, section 2.1; GPT-J",
        ),
    ] = "sequential"
    residual_scale: Annotated[
        float, Setting("of what each sublayer adds to the stream", source="Granite, arXiv:2408.13359")
    ] = 1.0


class PreNorm(nn.Module):
    """x + scale * drop(f(norm(x)))."""

    def __init__(
        self,
        d_model: int,
        norm: Norm | None = "layernorm",
        eps: float = 1e-5,
        dropout: float = 0.0,
        scale: float = 1.0,
    ) -> None:
        """norm: None for none, where another sublayer's norm serves this one too."""
        super().__init__()
        self.norm = nn.Identity() if norm is None else build_norm(norm, d_model, eps)
        self.drop, self.scale = nn.Dropout(dropout), scale

    def forward(self, x: Float, f: Callable[[Float], Float]) -> Float:
        """Wrap the sublayer f around the stream x (B, T, D)."""
        return x + self.branch(x, f)

    def branch(self, x: Float, f: Callable[[Float], Float]) -> Float:
        """What f adds to the stream."""
        return self.scaled(self.drop(f(self.norm(x))))

    def scaled(self, y: Float) -> Float:
        """scale * y."""
        return y if self.scale == 1.0 else y * self.scale


class Sandwich(PreNorm):
    """x + scale * drop(norm'(f(norm(x))))."""

    def __init__(
        self, d_model: int, norm: Norm = "layernorm", eps: float = 1e-5, dropout: float = 0.0, scale: float = 1.0
    ) -> None:
        super().__init__(d_model, norm, eps, dropout, scale)
        self.norm_after = build_norm(norm, d_model, eps)

    def branch(self, x: Float, f: Callable[[Float], Float]) -> Float:
        """What f adds to the stream."""
        return self.scaled(self.drop(self.norm_after(f(self.norm(x)))))


class BranchNorm(PreNorm):
    """x + scale * drop(norm(f(x)))."""

    def __init__(
        self, d_model: int, norm: Norm = "layernorm", eps: float = 1e-5, dropout: float = 0.0, scale: float = 1.0
    ) -> None:
        super().__init__(d_model, None, eps, dropout, scale)
        self.norm_after = build_norm(norm, d_model, eps)

    def branch(self, x: Float, f: Callable[[Float], Float]) -> Float:
        """What f adds to the stream."""
        return self.scaled(self.drop(self.norm_after(f(x))))


class PostNorm(nn.Module):
    """norm(x + scale * drop(f(x)))."""

    def __init__(
        self, d_model: int, norm: Norm = "layernorm", eps: float = 1e-5, dropout: float = 0.0, scale: float = 1.0
    ) -> None:
        super().__init__()
        self.norm, self.drop = build_norm(norm, d_model, eps), nn.Dropout(dropout)
        self.scale = scale

    def forward(self, x: Float, f: Callable[[Float], Float]) -> Float:
        """Wrap the sublayer f around the stream x (B, T, D)."""
        y = self.drop(f(x))
        return self.norm(x + (y if self.scale == 1.0 else y * self.scale))


Around = PreNorm | PostNorm  #: a Sandwich is a PreNorm, and so is a BranchNorm
PLACEMENTS: dict[str, type[PreNorm] | type[PostNorm]] = {
    "pre": PreNorm, "post": PostNorm, "sandwich": Sandwich, "branch": BranchNorm,
}  # fmt: skip


def placement(name: Placement) -> type[PreNorm] | type[PostNorm]:
    """The class for "pre", "post", "sandwich" or "branch"."""
    if name not in PLACEMENTS:
        raise unknown("norm placement", name, PLACEMENTS)
    return PLACEMENTS[name]


__all__ = [
    "PLACEMENTS",
    "Around",
    "BranchNorm",
    "Placement",
    "PostNorm",
    "PreNorm",
    "Residual",
    "ResidualSettings",
    "Sandwich",
    "placement",
]
