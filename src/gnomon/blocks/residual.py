"""Where the norm sits around a sublayer; it decides the path of the gradient.

PreNorm    x + drop(f(norm(x)))         the identity path is untouched (GPT-2, Llama)
PostNorm   norm(x + drop(f(x)))         the original Transformer; needs warm-up (Xiong et al. 2020, arXiv:2002.04745)
Sandwich   x + drop(norm'(f(norm(x))))  what a sublayer adds keeps its size (Ding et al. 2021, arXiv:2105.13290)
BranchNorm x + drop(norm(f(x)))         the same without the norm before (Liu et al. 2022, arXiv:2111.09883, Swin V2;
                                        OLMo 2, arXiv:2501.00656, section 3.2)

What is added may be scaled: x + scale * drop(...) (Granite).
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from torch import nn

from gnomon.errors import unknown
from gnomon.kinds import Setting
from gnomon.norm import NormSettings, build_norm
from gnomon.settings import DropoutSettings, WidthSettings, make_settings, takes
from gnomon.shapes import Float

Placement = Literal["pre", "post", "sandwich", "branch"]
Residual = Literal["sequential", "parallel", "one norm"]


@dataclass(frozen=True, kw_only=True)
class AroundSettings(NormSettings, DropoutSettings):
    """What a sublayer adds"""

    residual_scale: Annotated[
        float, Setting("of what each sublayer adds to the stream", source="Granite, arXiv:2408.13359")
    ] = 1.0


@dataclass(frozen=True, kw_only=True)
class ResidualSettings(AroundSettings):
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


@dataclass(frozen=True)
class SublayerSettings(AroundSettings, WidthSettings):
    """What is around a sublayer"""


class Around(nn.Module):
    """What is around a sublayer: a norm, dropout and a scale. A subclass says where."""

    @takes(SublayerSettings)
    def __init__(self, d_model: int, **settings: Any) -> None:
        """The width, and any other setting."""
        super().__init__()
        s = make_settings(SublayerSettings, d_model=d_model, **settings)
        self.norm, self.drop = build_norm(s.norm, d_model, s.norm_eps), nn.Dropout(s.dropout)
        self.scale = s.residual_scale

    @abstractmethod
    def forward(self, x: Float, f: Callable[[Float], Float]) -> Float:
        """Wrap the sublayer f around the stream x (B, T, D)."""

    def scaled(self, y: Float) -> Float:
        """scale * y."""
        return y if self.scale == 1.0 else y * self.scale


class PreNorm(Around):
    """x + scale * drop(f(norm(x)))."""

    def forward(self, x: Float, f: Callable[[Float], Float]) -> Float:
        """Wrap the sublayer f around the stream x (B, T, D)."""
        return x + self.branch(x, f)

    def branch(self, x: Float, f: Callable[[Float], Float]) -> Float:
        """What f adds to the stream."""
        return self.scaled(self.drop(f(self.norm(x))))


class NoNorm(PreNorm):
    """x + scale * drop(f(x)), where another sublayer's norm serves this one too."""

    @takes(SublayerSettings)
    def __init__(self, d_model: int, **settings: Any) -> None:
        """The width, and any other setting."""
        super().__init__(d_model, **settings)
        self.norm = nn.Identity()


class Sandwich(PreNorm):
    """x + scale * drop(norm'(f(norm(x))))."""

    @takes(SublayerSettings)
    def __init__(self, d_model: int, **settings: Any) -> None:
        """The width, and any other setting."""
        super().__init__(d_model, **settings)
        self.norm_after = PreNorm(d_model, **settings).norm

    def branch(self, x: Float, f: Callable[[Float], Float]) -> Float:
        """What f adds to the stream."""
        return self.scaled(self.drop(self.norm_after(f(self.norm(x)))))


class BranchNorm(Sandwich):
    """x + scale * drop(norm(f(x)))."""

    @takes(SublayerSettings)
    def __init__(self, d_model: int, **settings: Any) -> None:
        """The width, and any other setting."""
        super().__init__(d_model, **settings)
        self.norm = nn.Identity()


class PostNorm(Around):
    """norm(x + scale * drop(f(x)))."""

    def forward(self, x: Float, f: Callable[[Float], Float]) -> Float:
        """Wrap the sublayer f around the stream x (B, T, D)."""
        y = self.drop(f(x))
        return self.norm(x + (y if self.scale == 1.0 else y * self.scale))


PLACEMENTS: dict[str, type[Around]] = {
    "pre": PreNorm,
    "post": PostNorm,
    "sandwich": Sandwich,
    "branch": BranchNorm,
}


def placement(name: Placement) -> type[Around]:
    """The class for "pre", "post", "sandwich" or "branch"."""
    if name not in PLACEMENTS:
        raise unknown("norm placement", name, PLACEMENTS)
    return PLACEMENTS[name]


__all__ = [
    "PLACEMENTS",
    "Around",
    "AroundSettings",
    "BranchNorm",
    "NoNorm",
    "Placement",
    "PostNorm",
    "PreNorm",
    "Residual",
    "ResidualSettings",
    "Sandwich",
    "placement",
]
