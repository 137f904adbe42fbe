"""Axial RoPE (Heo et al. 2024, arXiv:2403.13298, "RoPE-Axial"): some pairs of channels turn by row, others by column.

    (R_(y,x) q) . (R_(v,u) k) = q . R_(v-y, u-x) k       pair i of an axis turns by  coordinate theta_i
    theta_i = base^(-2i A / d),  i = 0 .. d/(2A) - 1     A axes, d/A channels each; base 100 (Qwen2-VL: 10 000)

Scores see the step from one cell to another along each axis. The first d/(2A) pairs are the first axis's (rows), as in
DINOv3 and in Qwen2-VL's encoder of pictures. A token at coordinates 0 is not turned, which is where a class token sits:
`Layout.grid(14, 14, before=1)`. It reads somewhat larger pictures than it was trained on; DINOv3 scales coordinates to
one extent instead (`extent=2 * math.pi`) and jitters them in training, so that no size has new angles. Text, whose
coordinates are all its position, is turned like a line on the diagonal.
"""

from collections.abc import Mapping
from typing import Any

import torch

from gnomon.errors import BadValue, check_arguments, must_be
from gnomon.glossary import message
from gnomon.layout import Layout
from gnomon.positions.base import PositionEncoding, Tables
from gnomon.positions.frequencies import check_base, pair_angles, turns
from gnomon.positions.rope import Pairing, RoPE
from gnomon.positions.scaling import plain_frequencies
from gnomon.shapes import Float


class AxialRoPE(PositionEncoding):
    """Rotary positions on a grid: an equal share of every head for each axis."""

    name = "axial-rope"
    paper = "Heo et al. 2024, arXiv:2403.13298"
    cite = """@misc{heo2024rotary,
      title = {Rotary Position Embedding for Vision Transformer},
      author = {Heo, Byeongho and Park, Song and Han, Dongyoon and Yun, Sangdoo},
      year = {2024}, eprint = {2403.13298}, archivePrefix = {arXiv}, url = {https://arxiv.org/abs/2403.13298},
    }"""
    used_by = "DINOv3, Qwen2-VL, Qwen2.5-VL"
    acts = "rotation"
    relative = True
    for_text = False
    extrapolation = "fair on somewhat larger grids"

    @check_arguments
    def __init__(self, d_head: int, axes: int = 2, base: float = 100.0, pairing: Pairing = "half") -> None:
        """axes: how many coordinates a token has, 2 of a picture. base and pairing: as of rope, base per axis."""
        super().__init__()
        check_axes(axes)
        check_base(base)
        if d_head < 2 * axes or d_head % (2 * axes):
            raise BadValue(
                f"axial-rope gives each of {axes} axes as many pairs of channels: d_head must be a multiple of "
                f"{2 * axes}, got {d_head}"
            )
        self.d_head, self.axes, self.base = d_head, axes, base
        self.rope = RoPE(d_head, base, pairing)

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Axes and a base are right or wrong by themselves."""
        if "axes" in options:
            check_axes(options["axes"])
        if "base" in options:
            check_base(options["base"])

    def frequencies(self) -> list[float]:
        """theta_i of every pair, in radians per cell, one axis after the other."""
        return plain_frequencies(self.base, self.d_head // self.axes) * self.axes

    def prepare(self, at: Layout, dtype: torch.dtype = torch.float32) -> Tables:
        """(cos, sin), each (B or 1, 1, T, d_head/2), from float64 angles, cast last."""
        at = at.one_row()
        places = at.axes(self.axes).repeat_interleave(self.d_head // (2 * self.axes), -1)  # (B, T, d_head/2)
        a = pair_angles(places, self.frequencies()).unsqueeze(1)
        return a.cos().to(dtype).to(at.device), a.sin().to(dtype).to(at.device)

    def rotate(self, x: Float, tables: Tables) -> Float:
        """x (B, H, T, C) with every pair turned by the coordinate that it reads."""
        return self.rope.rotate(x, tables)

    def describe(self, trained: int | None = None) -> list[str]:
        """How the channels are shared out, and the turns of one axis."""
        one = plain_frequencies(self.base, self.d_head // self.axes)
        about = {"axes": self.axes, "pairs": len(one), "width": self.d_head, "base": self.base}
        return [message("encodings", "axial_rope", **about), *turns(one, one, trained)]

    def extra_repr(self) -> str:
        """Shown by print(module)."""
        return f"d_head={self.d_head}, axes={self.axes}, base={self.base:g}, pairing={self.rope.pairing}"


def check_axes(axes: int) -> None:
    """Raise BadValue unless it is a number of axes."""
    must_be("axes", axes, int)
    if not 1 <= axes <= 16:
        raise BadValue(f"axes counts the coordinates of a token, from 1 to 16: 2 of a picture; got {axes}")


__all__ = ["AxialRoPE", "check_axes"]
