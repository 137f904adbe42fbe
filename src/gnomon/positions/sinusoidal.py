"""Sinusoidal positions (Vaswani et al. 2017, arXiv:1706.03762, section 3.5), added to the token vectors.

    PE[p, 2i] = sin(p w_i)    PE[p, 2i+1] = cos(p w_i)    w_i = base^(-2i/D)

`i` counts pairs: channel 0 turns fastest (period 6.28 tokens). Three tables are in use and are not interchangeable:
"interleaved" (the paper), "concatenated" (all sines, then all cosines), "tensor2tensor" (concatenated, with
w_i = base^(-i/(D/2-1)); fairseq, Marian, Whisper). It breaks soon past the training length.
"""

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import torch

from gnomon.errors import BadValue, unknown
from gnomon.layout import Layout
from gnomon.positions.base import PositionEncoding, angles, check_base, turns
from gnomon.shapes import Float

Table = Literal["interleaved", "concatenated", "tensor2tensor"]


class Sinusoidal(PositionEncoding):
    """Fixed sine and cosine vectors; any length, any d_model (odd too), no parameters (S3, S4)."""

    name = "sinusoidal"
    paper = "Vaswani et al. 2017, arXiv:1706.03762"
    acts = "input"
    beyond = "breaks after some 50 tokens"

    def __init__(self, d_model: int, base: float = 10000.0, table: Table = "interleaved") -> None:
        """d_model: width of the vectors. base: of the wavelengths. table: which of the three published layouts."""
        super().__init__()
        if d_model < 1:
            raise BadValue(f"d_model must be at least 1, got {d_model}")
        check_base(base)
        if table not in get_args(Table):
            raise unknown("sinusoidal table", table, get_args(Table))
        self.d_model, self.base, self.table = d_model, base, table

    def describe(self, trained: int | None = None) -> list[str]:
        """Wavelengths, and pairs that never complete a turn."""
        first = f"Sines and cosines of position, added to the token vectors ({self.table})."
        return [first, *turns(self.frequencies(), self.frequencies(), trained)]

    def vectors(self, at: Layout, dtype: torch.dtype = torch.float32) -> Float:
        """(B or 1, T, D) rows of the table at these positions, from float64 angles."""
        at = at.one_row()
        a = angles(at.pos, self.frequencies())  # (B, T, ceil(D/2))
        sin, cos = a.sin(), a.cos()[..., : self.d_model // 2]
        if self.table == "interleaved":
            pe = a.new_empty(*at.pos.shape, self.d_model)
            pe[..., 0::2], pe[..., 1::2] = sin, cos
        else:
            pe = torch.cat([sin, cos], -1)
        return pe.to(dtype).to(at.device)

    def frequencies(self) -> list[float]:
        """w_i of every sine, ceil(D/2) of them, in radians per token."""
        D, pairs = self.d_model, (self.d_model + 1) // 2
        if self.table == "tensor2tensor":
            return [self.base ** (-i / max(D // 2 - 1, 1)) for i in range(pairs)]
        return [self.base ** (-2 * i / D) for i in range(pairs)]

    def extra_repr(self) -> str:
        """Shown by print(module)."""
        return f"d_model={self.d_model}, base={self.base:g}, table={self.table}"


def sinusoidal_table(
    max_len: int, d_model: int, base: float = 10000.0, table: Table = "interleaved"
) -> npt.NDArray[np.float64]:
    """The table as a float64 numpy array (max_len, d_model); row p is the vector of position p (S3).

    >>> sinusoidal_table(2, 4).round(4).tolist()
    [[0.0, 1.0, 0.0, 1.0], [0.8415, 0.5403, 0.01, 1.0]]
    """
    rows = Sinusoidal(d_model, base, table).vectors(Layout.dense(1, max_len), torch.float64)
    return rows[0].numpy()


__all__ = ["Sinusoidal", "sinusoidal_table"]
