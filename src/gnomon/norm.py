"""Normalisation per token: LayerNorm (Ba et al. 2016, arXiv:1607.06450) and RMSNorm (Zhang and Sennrich 2019,
arXiv:1910.07467). Neither mixes tokens, so what a token becomes does not depend on its batch mates."""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from torch import nn
from torch.nn import functional as F

from gnomon.errors import unknown
from gnomon.kinds import Setting
from gnomon.shapes import Float

Norm = Literal["layernorm", "layernorm_no_bias", "rmsnorm", "rmsnorm_plus_one"]


@dataclass(frozen=True, kw_only=True)
class NormSettings:
    """Norms"""

    norm: Annotated[Norm, Setting("layernorm_no_bias is MPT's, rmsnorm_plus_one is Gemma's")] = "layernorm"
    norm_eps: Annotated[float, Setting("added to the variance", least=0, below=1)] = 1e-5


class RMSNormPlusOne(nn.Module):
    """x / rms(x) * (1 + w), w near 0, computed in float32 and rounded once (Gemma, arXiv:2403.08295, in its code)."""

    def __init__(self, d_model: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float) -> Float:
        """x (..., D) -> (..., D)."""
        wide = x if x.dtype == torch.float64 else x.float()
        weight = 1.0 + self.weight.to(wide.dtype)
        return F.rms_norm(wide, self.weight.shape, weight, self.eps).to(x.dtype)


def build_norm(kind: Norm, d_model: int, eps: float = 1e-5) -> nn.Module:
    """The module for a name: "layernorm", "layernorm_no_bias" (MPT), "rmsnorm" or "rmsnorm_plus_one" (Gemma)."""
    if kind == "layernorm":
        return nn.LayerNorm(d_model, eps=eps)
    if kind == "layernorm_no_bias":
        return nn.LayerNorm(d_model, eps=eps, bias=False)
    if kind == "rmsnorm":
        return nn.RMSNorm(d_model, eps=eps)
    if kind == "rmsnorm_plus_one":
        return RMSNormPlusOne(d_model, eps)
    raise unknown("norm", kind, ("layernorm", "layernorm_no_bias", "rmsnorm", "rmsnorm_plus_one"))


__all__ = ["Norm", "NormSettings", "RMSNormPlusOne", "build_norm"]
