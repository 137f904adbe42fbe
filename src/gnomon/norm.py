"""Normalisation per token: LayerNorm (Ba et al. 2016, arXiv:1607.06450) and RMSNorm (Zhang and Sennrich 2019,
arXiv:1910.07467). Neither mixes tokens, so what a token becomes does not depend on its batch mates (S19)."""

from typing import Literal

from torch import nn

from gnomon.errors import unknown

Norm = Literal["layernorm", "rmsnorm"]
_KINDS: dict[str, type[nn.LayerNorm] | type[nn.RMSNorm]] = {"layernorm": nn.LayerNorm, "rmsnorm": nn.RMSNorm}


def build_norm(kind: Norm, d_model: int, eps: float = 1e-5) -> nn.Module:
    """The module for a name: "layernorm" or "rmsnorm"."""
    if kind not in _KINDS:
        raise unknown("norm", kind, _KINDS)
    return _KINDS[kind](d_model, eps=eps)


__all__ = ["Norm", "build_norm"]
