"""Linear layers: torch's own, multiplied by compiled products where few rows meet a large matrix (`gnomon.native`)."""

from torch import nn
from torch.nn import functional as F

from gnomon.native import product
from gnomon.shapes import Float


def linear(x: Float, weight: Float, bias: Float | None = None) -> Float:
    """x (..., C) W^T + b, (..., out): what `torch.nn.functional.linear` means."""
    y = product(x, weight, bias, weight.shape[0])
    return F.linear(x, weight, bias) if y is None else y


class Linear(nn.Linear):
    """torch.nn.Linear in every respect but speed."""

    def forward(self, x: Float) -> Float:
        """x (..., in_features) -> (..., out_features)."""
        return linear(x, self.weight, self.bias)


__all__ = ["Linear", "linear"]
