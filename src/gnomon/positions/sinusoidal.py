"""Sinusoidal positions (Vaswani et al. 2017, arXiv:1706.03762, section 3.5), added to the token vectors.

    PE[p, 2i] = sin(p w_i)    PE[p, 2i+1] = cos(p w_i)    w_i = base^(-2i/D)

`i` counts pairs: channel 0 turns fastest (period 6.28 tokens). Three tables are in use and are not interchangeable:
"interleaved" (the paper), "concatenated" (all sines, then all cosines), "tensor2tensor" (concatenated, with
w_i = base^(-i/(D/2-1)); fairseq, Marian, Whisper). It breaks soon past the training length.
"""

from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import torch

from gnomon.errors import BadValue, check_arguments, must_be, unknown
from gnomon.glossary import message
from gnomon.layout import Layout, Positions
from gnomon.positions.base import PositionEncoding
from gnomon.positions.frequencies import angles, check_base, turns
from gnomon.shapes import Float, Int

Table = Literal["interleaved", "concatenated", "tensor2tensor"]


class Sinusoidal(PositionEncoding):
    """Fixed sine and cosine vectors; any length, any d_model (odd too), no parameters."""

    name = "sinusoidal"
    paper = "Vaswani et al. 2017, arXiv:1706.03762"
    cite = r"""@misc{vaswani2017attention,
      title = {Attention Is All You Need},
      author = {Vaswani, Ashish and Shazeer, Noam and Parmar, Niki and Uszkoreit, Jakob and Jones, Llion and Gomez,
        Aidan N. and Kaiser, {\L}ukasz and Polosukhin, Illia},
      year = {2017}, eprint = {1706.03762}, archivePrefix = {arXiv}, url = {https://arxiv.org/abs/1706.03762},
    }"""
    used_by = "Whisper, M2M100, NLLB, Marian, Pegasus, XGLM, MusicGen"
    acts = "input"
    extrapolation = "breaks after some 50 tokens"

    @check_arguments
    def __init__(self, d_model: int, base: float = 10000.0, table: Table = "interleaved", offset: int = 0) -> None:
        """d_model: width of the vectors. base: of the wavelengths. table: which of the three published layouts.
        offset: the row of position 0 (M2M-100 has 2)."""
        super().__init__()
        if d_model < 1:
            raise BadValue(f"d_model must be at least 1, got {d_model}")
        check_base(base)
        if table not in get_args(Table):
            raise unknown("sinusoidal table", table, get_args(Table))
        if offset < 0:
            raise BadValue(f"offset is the row of position 0, at least 0; got {offset}")
        self.d_model, self.base, self.table, self.offset = d_model, base, table, offset

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """A base is wrong or right by itself."""
        if "base" in options:
            check_base(options["base"])

    def describe(self, trained: int | None = None) -> list[str]:
        """Wavelengths, and pairs that never complete a turn."""
        first = message("encodings", "sinusoidal", table=self.table)
        return [first, *turns(self.frequencies(), self.frequencies(), trained)]

    def vectors(self, at: Layout, dtype: torch.dtype = torch.float32) -> Float:
        """(B or 1, T, D) rows of the table at these positions, from float64 angles."""
        return self.of(at.one_row().pos, dtype)

    def of(self, pos: Int, dtype: torch.dtype = torch.float32) -> Float:
        """The rows (..., D) of these positions."""
        a = angles(pos + self.offset, self.frequencies())
        sin, cos = a.sin(), a.cos()[..., : self.d_model // 2]
        if self.table == "interleaved":
            pe = sin.new_empty(*pos.shape, self.d_model)
            pe[..., 0::2], pe[..., 1::2] = sin, cos
        else:
            pe = torch.cat([sin, cos], -1)
        return pe.to(dtype).to(pos.device)

    def sin_cos(self, at: Layout | Positions) -> tuple[Float, Float]:
        """The sines (B, T, ceil(D/2)) and the cosines (B, T, floor(D/2)) of these positions, in float64."""
        pos = (at if isinstance(at, Layout) else Layout.placed(at)).pos
        a = angles(pos + self.offset, self.frequencies())
        return a.sin(), a.cos()[..., : self.d_model // 2]

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
    """The table as a float64 numpy array (max_len, d_model); row p is the vector of position p.

    >>> sinusoidal_table(2, 4).round(4).tolist()
    [[0.0, 1.0, 0.0, 1.0], [0.8415, 0.5403, 0.01, 1.0]]
    """
    must_be("max_len", max_len, int)
    rows = Sinusoidal(d_model, base, table).vectors(Layout.dense(1, max_len), torch.float64)
    return rows[0].numpy()


def sin_cos(
    max_len: int, d_model: int, base: float = 10000.0, table: Table = "interleaved"
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The same table's sines and cosines apart, as float64 arrays (max_len, d_model / 2): row p is position p.

    >>> sin, cos = sin_cos(2, 4)
    >>> sin.round(4).tolist(), cos.round(4).tolist()
    ([[0.0, 0.0], [0.8415, 0.01]], [[1.0, 1.0], [0.5403, 1.0]])
    """
    must_be("max_len", max_len, int)
    sin, cos = Sinusoidal(d_model, base, table).sin_cos(Layout.dense(1, max_len))
    return sin[0].numpy(), cos[0].numpy()


__all__ = ["Sinusoidal", "sin_cos", "sinusoidal_table"]
