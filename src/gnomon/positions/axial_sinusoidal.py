"""Axial sinusoids: the sinusoids of the row in some channels, those of the column in the others (2-D sin-cos).

    PE(y, x) = [ PE_(D/2)(y), PE_(D/2)(x) ]       PE_n(p): the sinusoidal vector of width n of position p

Vaswani et al.'s waves along each axis (Parmar et al. 2018, arXiv:1802.05751, section 4), added to the vectors of
patches. Rows come first (DETR; MAE and ViT baselines have columns first, which is another order of channels), each axis
with its own table: "concatenated" is that of MAE (He et al. 2021, arXiv:2111.06377) and DiT, "interleaved" DETR's. A
class token at coordinates 0 gets the vector of the first cell; MAE gives it zeros, which differ by a constant that its
own vector learns. As along a line, cells past those of training break it soon.
"""

from collections.abc import Mapping
from typing import Any, Literal

import torch

from gnomon.errors import BadValue, check_arguments
from gnomon.glossary import message
from gnomon.layout import Layout
from gnomon.positions.axial_rope import check_axes
from gnomon.positions.base import PositionEncoding
from gnomon.positions.frequencies import check_base, split_evenly, turns
from gnomon.positions.sinusoidal import Sinusoidal
from gnomon.shapes import Float

Table = Literal["interleaved", "concatenated"]


class AxialSinusoidal(PositionEncoding):
    """Fixed sine and cosine vectors of cells on a grid; any size, any width, no parameters."""

    name = "axial-sinusoidal"
    paper = "Parmar et al. 2018, arXiv:1802.05751"
    cite = r"""@misc{parmar2018image,
      title = {Image Transformer},
      author = {Parmar, Niki and Vaswani, Ashish and Uszkoreit, Jakob and Kaiser, {\L}ukasz and Shazeer, Noam and Ku,
        Alexander and Tran, Dustin},
      year = {2018}, eprint = {1802.05751}, archivePrefix = {arXiv}, url = {https://arxiv.org/abs/1802.05751},
    }"""
    used_by = "DETR, MAE"
    acts = "input"
    for_text = False
    extrapolation = "breaks soon past the cells of training"

    @check_arguments
    def __init__(self, d_model: int, axes: int = 2, base: float = 10000.0, table: Table = "concatenated") -> None:
        """axes: how many coordinates a token has, 2 of a picture. base, table: of each axis, as of sinusoidal."""
        super().__init__()
        check_axes(axes)
        if d_model < axes:
            raise BadValue(f"d_model must be at least axes={axes}, a channel for each of them; got {d_model}")
        self.d_model, self.axes, self.base, self.table = d_model, axes, base, table
        self._along = [Sinusoidal(width, base, table) for width in split_evenly(d_model, axes)]

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Axes and a base are right or wrong by themselves."""
        if "axes" in options:
            check_axes(options["axes"])
        if "base" in options:
            check_base(options["base"])

    def vectors(self, at: Layout, dtype: torch.dtype = torch.float32) -> Float:
        """(B or 1, T, D): the vectors of the coordinates, one axis after the other, from float64 angles."""
        at = at.one_row()
        places = at.axes(self.axes).unbind(-1)
        return torch.cat([wave.of(pos, dtype) for wave, pos in zip(self._along, places, strict=True)], -1)

    def frequencies(self) -> list[float]:
        """w_i of every sine, in radians per cell, one axis after the other."""
        return [theta for wave in self._along for theta in wave.frequencies()]

    def describe(self, trained: int | None = None) -> list[str]:
        """How the channels are shared out, and the waves of one axis."""
        one = self._along[0].frequencies()
        about = {"axes": self.axes, "width": self._along[0].d_model, "table": self.table}
        return [message("encodings", "axial_sinusoidal", **about), *turns(one, one, trained)]

    def extra_repr(self) -> str:
        """Shown by print(module)."""
        return f"d_model={self.d_model}, axes={self.axes}, base={self.base:g}, table={self.table}"


__all__ = ["AxialSinusoidal"]
