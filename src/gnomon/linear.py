"""Linear layers: torch's own, multiplied by compiled products where few rows meet a large matrix (`gnomon.native`)."""

from torch import Tensor, nn
from torch.nn import functional as F

from gnomon.native import STORED_AS, product
from gnomon.shapes import Float
from gnomon.stored import Stored

_KIND = {dtype: kind for kind, dtype in STORED_AS.items() if dtype.is_floating_point}


def linear(x: Float, weight: Tensor | Stored, bias: Float | None = None) -> Float:
    """x (..., C) W^T + b, (..., out): what `torch.nn.functional.linear` means. Of half precision sums are float32."""
    if isinstance(weight, Stored):
        return weight(x, bias)
    y = None
    if x.dtype == weight.dtype and (kind := _KIND.get(x.dtype)) is not None:
        wide_bias = bias if bias is None or kind == "float32" else bias.float()
        y = product(x if kind == "float32" else x.float(), weight, wide_bias, weight.shape[0], kind)  # type: ignore[arg-type]
    return F.linear(x, weight, bias) if y is None else y.to(x.dtype)


class Linear(nn.Linear):
    """torch.nn.Linear in every respect but speed."""

    stores_weight = True  #: its weight may be kept in fewer bits, see `gnomon.stored`

    def forward(self, x: Float) -> Float:
        """x (..., in_features) -> (..., out_features)."""
        return linear(x, self.weight, self.bias)


__all__ = ["Linear", "linear"]
