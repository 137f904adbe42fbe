"""Learned absolute positions: one trained row per position, added to the token vectors (GPT-2, BERT, OPT, ViT).

    x[t] = E[id[t]] + P[t + offset],    P (max_positions + offset, D)

Gehring et al. 2017 (arXiv:1705.03122, section 3.1). There is no row past the table: position >= max_positions is an
error, not a number. `grow` makes a longer table from this one (fine-tuning is needed after it).
"""

from typing import Literal, get_args

import torch
from torch import nn
from torch.nn import functional as F

from gnomon.errors import BadValue, check_arguments, must_be, unknown
from gnomon.glossary import message
from gnomon.layout import Layout
from gnomon.positions.base import PositionEncoding
from gnomon.shapes import Float

Growth = Literal["interpolate", "tile", "zero"]


class Learned(PositionEncoding):
    """A table of `max_positions` trained rows."""

    name = "learned"
    paper = "Gehring et al. 2017, arXiv:1705.03122"
    cite = """@misc{gehring2017convolutional,
      title = {Convolutional Sequence to Sequence Learning},
      author = {Gehring, Jonas and Auli, Michael and Grangier, David and Yarats, Denis and Dauphin, Yann N.},
      year = {2017}, eprint = {1705.03122}, archivePrefix = {arXiv}, url = {https://arxiv.org/abs/1705.03122},
    }"""
    used_by = "GPT-2, GPT-3, OPT, BERT, RoBERTa, ViT, CLIP"
    acts = "input"
    extrapolation = "no rows: an error"

    @check_arguments
    def __init__(self, d_model: int, max_positions: int, std: float = 0.02, offset: int = 0) -> None:
        """d_model: width. max_positions: how many there are. std: of the normal initialisation (GPT-2: 0.02).
        offset: rows of the table before that of position 0, which nothing reads (OPT, BART and RoBERTa have 2)."""
        super().__init__()
        if max_positions is None or max_positions < 1:
            raise BadValue(f"learned positions need max_positions >= 1, got {max_positions}")
        if offset < 0:
            raise BadValue(f"offset counts the rows before that of position 0, got {offset}")
        self.std, self.offset = std, offset
        self.weight = nn.Parameter(torch.empty(max_positions + offset, d_model))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the rows anew."""
        nn.init.normal_(self.weight, std=self.std)

    @property
    def max_positions(self) -> int:
        """How many positions have a row."""
        return self.weight.shape[0] - self.offset

    def check(self, at: Layout) -> None:
        """Raise BadValue if a real token sits past the table; names the rows and the positions, changes nothing."""
        pos = torch.where(at.real, at.pos, 0)
        if at.pos.is_floating_point():
            raise BadValue("learned positions are rows of a table and need whole positions, got fractional ones")
        if pos.numel() == 0 or pos.is_meta:
            return
        top, low, rows = int(pos.max()), int(pos.min()), self.max_positions
        if low < 0:
            raise BadValue(f"positions start at 0, got {low}")
        if top >= rows:
            late = pos[pos >= rows]
            row = int((pos >= rows).any(1).nonzero()[0])
            raise BadValue(
                f"learned positions hold {rows} rows (0 to {rows - 1}) but the batch reaches from position "
                f"{int(late.min())} (first missing) to {top} (last asked), first in row {row} of {at.shape[0]}. "
                f"Build with max_positions >= {top + 1}, shorten the input to {rows} tokens, grow the table, or "
                "choose sinusoidal, rope or alibi"
            )

    def vectors(self, at: Layout, dtype: torch.dtype = torch.float32) -> Float:
        """(B or 1, T, D) rows of the table."""
        at = at.one_row()
        return F.embedding(torch.where(at.real, at.pos, 0) + self.offset, self.weight)

    def grow(self, max_positions: int, how: Growth = "interpolate") -> "Learned":
        """A new table of `max_positions` rows.

        interpolate  rows stretched linearly over the longer range, first and last row kept
        tile         rows repeated from the start (Beltagy et al. 2020, arXiv:2004.05150, section 5); old rows bit-equal
        zero         old rows bit-equal, new ones zero
        """
        must_be("max_positions", max_positions, int)
        must_be("how", how, str)
        if how not in get_args(Growth):
            raise unknown("way to grow", how, get_args(Growth))
        before, old = self.weight.detach()[: self.offset], self.weight.detach()[self.offset :]
        if max_positions < len(old):
            raise BadValue(f"the table has {len(old)} rows; growing to {max_positions} would lose some")
        if how == "tile":
            new = old.repeat(-(-max_positions // len(old)), 1)[:max_positions]
        elif how == "zero":
            new = F.pad(old, (0, 0, 0, max_positions - len(old)))
        else:
            new = F.interpolate(old.T[None].float(), size=max_positions, mode="linear", align_corners=True)[0].T
        grown = Learned(old.shape[1], max_positions, self.std, self.offset)
        grown.weight = nn.Parameter(torch.cat([before, new.to(old.dtype)]))
        return grown

    def describe(self, trained: int | None = None) -> list[str]:
        """Rows, and their sizes."""
        rows = self.weight.detach()[self.offset :].float().norm(dim=1)
        first, last = float(rows[0]), float(rows[-1])
        table = {"rows": self.max_positions, "width": self.weight.shape[1]}
        return [
            message("encodings", "learned_after", **table, offset=self.offset)
            if self.offset
            else message("encodings", "learned", **table),
            message("encodings", "learned_lengths", mean=float(rows.mean()), first=first, last=last),
            message("encodings", "learned_twice", rows=self.max_positions),
        ]

    def extra_repr(self) -> str:
        """Shown by print(module)."""
        offset = f", offset={self.offset}" if self.offset else ""
        return f"max_positions={self.max_positions}, d_model={self.weight.shape[1]}{offset}"


__all__ = ["Learned"]
