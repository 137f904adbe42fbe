"""The encodings of positional-encodings (one, two and three axes), as bare tables along their first axis."""

from typing import Any

import torch

from gnomon.audit.adapters.positions import Rows, Table
from gnomon.audit.restore import cast_while_asking
from gnomon.positions import sinusoidal_table
from gnomon.shapes import Float


class PositionalEncodings(Table):
    """A PositionalEncoding1D, 2D or 3D, or a Permute of one; all other axes have one place."""

    def __init__(self, model: Any, *, seed: int = 0) -> None:
        plain = model.penc if "Permute" in type(model).__name__ else model
        super().__init__(
            type(model).__name__,
            _rows(plain),
            promised=_expected_rows(plain),
            cast=lambda dtype: cast_while_asking(plain, dtype, _rows(plain, dtype)),
        )
        self.model, self.seed = model, seed


def _axes(model: Any) -> int:
    return int(type(model).__name__.removeprefix("PositionalEncoding")[0])


def _rows(model: Any, dtype: torch.dtype = torch.float32) -> Rows:
    def rows(n: int) -> Float:
        shape = (1, n, *[1] * (_axes(model) - 1), model.org_channels)
        found: Float = model(torch.zeros(shape, dtype=dtype, device=model.inv_freq.device))
        return found.reshape(n, -1)

    return rows


def _expected_rows(model: Any) -> Rows:
    """Sines and cosines of each axis's place side by side, the channels shared out evenly and cut at the end."""

    def rows(n: int) -> Float:
        along = torch.from_numpy(sinusoidal_table(n, model.channels))
        still = along[:1].expand(n, -1)
        return torch.cat([along, *[still] * (_axes(model) - 1)], -1)[:, : model.org_channels]

    return rows


__all__ = ["PositionalEncodings"]
