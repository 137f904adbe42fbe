"""Tensors from what people give: a tensor, an array, a number or lists of numbers, checked."""

from collections.abc import Sequence
from math import isfinite, prod
from operator import index
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from gnomon.errors import BadValue, must_be, short_repr, wrong
from gnomon.shapes import Bool, Float, Int

CELLS = 2**31  #: of a grid, at most


def check_device(device: object) -> None:
    """Raise BadValue unless torch has such a device, or None was given."""
    must_be("device", device, torch.device | str | None, "such as 'cpu' or 'cuda:0'")
    try:
        torch.device(device) if isinstance(device, str) else None
    except RuntimeError as error:
        raise wrong("device", device, "a device of torch, such as 'cpu' or 'cuda:0'") from error


def as_mask(mask: Any) -> Bool:
    """A (B, T) mask of truth values; 0/1 integers are taken, floats (additive masks?) and other numbers refused."""
    expected, how = "(batch, tokens) truth values", "true or 1 at real tokens, false or 0 at padding: [[1, 1, 0]]"
    found = numbers("a padding mask", mask, expected, None, how)
    if found.dim() != 2:
        raise BadValue(f"a padding mask has shape (batch, tokens), got {tuple(found.shape)}; {how}")
    if found.dtype == torch.bool:
        return found
    if found.dtype.is_floating_point or bool(((found != 0) & (found != 1)).any()):
        raise BadValue(
            f"a padding mask holds true/1 at real tokens and false/0 at padding, got {found.dtype} "
            f"with values from {found.min().item()} to {found.max().item()}"
        )
    return found.bool()


def numbers(
    name: str, given: Any, expected: str, device: torch.device | str | None = None, how: str = ""
) -> torch.Tensor:
    """A tensor of what was given as a tensor, an array, a number or (nested) lists of numbers."""
    check_device(device)
    try:
        found = given if isinstance(given, torch.Tensor) else torch.as_tensor(given, device=device)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise wrong(name, given, expected, how) from error
    known = found.is_floating_point() and not found.is_meta and not torch.compiler.is_compiling()
    if found.is_complex() or (known and not bool(found.isfinite().all())):
        raise wrong(name, given, f"{expected}, all of them real and finite", how)
    return found if device is None else found.to(device)


def packed_fields(lengths: Any) -> tuple[Int, Int, Int, Int]:
    """pos, step, doc and length, (B, T) each, of rows of documents that are as long as this."""
    rows = _rows_of_lengths(lengths)
    T = max(sum(row) for row in rows)
    pos, step, doc, length = (torch.zeros(len(rows), T, dtype=torch.long) for _ in range(4))
    doc -= 1
    for b, row in enumerate(rows):
        start = 0
        for d, n in enumerate(row):
            here = slice(start, start + n)
            pos[b, here], doc[b, here], length[b, here] = torch.arange(n), d, n
            start += n
        step[b, :start] = torch.arange(start)
    return pos, step, doc, length


def _rows_of_lengths(lengths: Any) -> list[list[int]]:
    """Rows of lengths of documents, checked."""
    try:
        rows = [[index(n) for n in row] for row in lengths]
    except TypeError as error:
        raise wrong(
            "lengths", lengths, "rows of document lengths", "one row of 3 and 2 tokens is Layout.packed([[3, 2]])"
        ) from error
    if not rows or any(n < 1 for row in rows for n in row):
        raise BadValue(f"packed lengths must be rows of positive document lengths, got {short_repr(lengths)}")
    return rows


def cells(sizes: Sequence[int], extent: float | None = None) -> Int | Float:
    """The coordinates of every cell of a grid, (cells, axes), the last axis running fastest.

    extent: cells divide what lies between -extent and extent of each axis and sit at their middles, instead of 0, 1, 2.
    """
    must_be("extent", extent, float | None)
    if extent is not None and not isfinite(extent):
        raise wrong("extent", extent, "a finite number")
    if not sizes or any(type(n) is not int or n < 1 for n in sizes) or prod(sizes) > CELLS:
        expected = "a grid's cells along each axis, whole numbers from 1, and at most 2**31 cells in all"
        raise wrong("sizes", sizes, expected, "Layout.grid(height, width)")
    along = [torch.arange(n) if extent is None else ((torch.arange(n) + 0.5) / n * 2 - 1) * extent for n in sizes]
    return torch.stack([axis.flatten() for axis in torch.meshgrid(*along, indexing="ij")], -1)


def pieces(rows: Sequence[Sequence[int | Sequence[int]]]) -> tuple[Int, Bool]:
    """Coordinates (B, T, A) of rows of texts, by their length, and of pictures, by their cells along each axis; and
    where there is something, (B, T). Each piece starts after the largest coordinate before it."""
    expected = "rows of pieces, whose pictures have as many axes each"
    how = "5 tokens, a picture and 3 tokens are [[5, (1, 4, 4), 3]]"
    try:
        axes = {1 if isinstance(piece, int) else len(piece) for row in rows for piece in row}
    except TypeError as error:
        raise wrong("rows", rows, expected, how) from error
    if len(axes - {1}) > 1 or not rows or not all(rows):
        raise wrong("rows", rows, expected, how)
    placed = []
    for row in rows:
        here, start = [], 0
        for piece in row:
            here.append(cells((piece,) if isinstance(piece, int) else piece).expand(-1, max(axes)) + start)
            start = int(here[-1].amax()) + 1
        placed.append(torch.cat(here))
    mask = [torch.ones(len(coords), dtype=torch.bool) for coords in placed]
    return pad_sequence(placed, batch_first=True), pad_sequence(mask, batch_first=True)


__all__ = ["as_mask", "cells", "check_device", "numbers", "packed_fields", "pieces"]
