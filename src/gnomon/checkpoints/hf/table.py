"""Tables of names: which of their tensors holds which of ours, one line each, read in both directions.

A `*` in a name is the number of a layer, a second one that of an expert; theirs without the second holds all experts
of the layer. A line whose weights the model does not have (a bias, a second norm) is left
out; a weight of the model that no line names is an error. What differs between the two is a small object:

    Same         one tensor, alike
    Transposed   (in, out) instead of (out, in): GPT-2's Conv1D
    Row          with an axis of 1 before it
    Stacked      several of ours below one another
    Columns      several of ours side by side, transposed
    PerHead      queries, keys and values of the first head, then those of the second ...
    PerExpert    one matrix per expert, transposed; several of ours in turn, row by row, in each (gpt-oss)

Every one only moves numbers, so there and back is the same bits.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gnomon.errors import BadValue
from gnomon.models import ModelConfig

Shape = tuple[int, ...]


class Transform(ABC):
    """How one of their tensors holds one or several of ours."""

    @abstractmethod
    def shape(self, ours: Sequence[Shape]) -> Shape:
        """Their shape, from ours."""

    @abstractmethod
    def split(self, theirs: Tensor, ours: Sequence[Shape], config: ModelConfig) -> Sequence[Tensor]:
        """Their tensor as ours, of these shapes."""

    @abstractmethod
    def join(self, ours: Sequence[Tensor], config: ModelConfig) -> Tensor:
        """Ours as theirs."""


class Same(Transform):
    """One tensor, alike."""

    def shape(self, ours: Sequence[Shape]) -> Shape:
        """The same."""
        return ours[0]

    def split(self, theirs: Tensor, ours: Sequence[Shape], config: ModelConfig) -> Sequence[Tensor]:
        """The tensor itself."""
        return [theirs]

    def join(self, ours: Sequence[Tensor], config: ModelConfig) -> Tensor:
        """The tensor itself."""
        return ours[0]


class Transposed(Same):
    """One tensor, rows and columns exchanged; a vector stays as it is."""

    def shape(self, ours: Sequence[Shape]) -> Shape:
        """Backwards."""
        return ours[0][::-1]

    def split(self, theirs: Tensor, ours: Sequence[Shape], config: ModelConfig) -> Sequence[Tensor]:
        """Exchanged."""
        return [_turned(theirs)]

    def join(self, ours: Sequence[Tensor], config: ModelConfig) -> Tensor:
        """Exchanged back."""
        return _turned(ours[0])


class Row(Same):
    """One vector, kept as a matrix of one row."""

    def shape(self, ours: Sequence[Shape]) -> Shape:
        """One axis more."""
        return (1, *ours[0])

    def split(self, theirs: Tensor, ours: Sequence[Shape], config: ModelConfig) -> Sequence[Tensor]:
        """Its row."""
        return [theirs[0]]

    def join(self, ours: Sequence[Tensor], config: ModelConfig) -> Tensor:
        """As a row."""
        return ours[0][None]


class Stacked(Transform):
    """Ours one below the other, along the first axis."""

    def shape(self, ours: Sequence[Shape]) -> Shape:
        """As many rows as all of ours together."""
        return (sum(shape[0] for shape in ours), *ours[0][1:])

    def split(self, theirs: Tensor, ours: Sequence[Shape], config: ModelConfig) -> Sequence[Tensor]:
        """Cut at their heights."""
        return torch.split(theirs, [shape[0] for shape in ours])

    def join(self, ours: Sequence[Tensor], config: ModelConfig) -> Tensor:
        """Put together."""
        return torch.cat(list(ours))


class Columns(Stacked):
    """Ours stacked, and the stack transposed (GPT-2's c_attn)."""

    def shape(self, ours: Sequence[Shape]) -> Shape:
        """That of the stack, backwards."""
        return super().shape(ours)[::-1]

    def split(self, theirs: Tensor, ours: Sequence[Shape], config: ModelConfig) -> Sequence[Tensor]:
        """Turned, then cut."""
        return super().split(_turned(theirs), ours, config)

    def join(self, ours: Sequence[Tensor], config: ModelConfig) -> Tensor:
        """Put together, then turned."""
        return _turned(super().join(ours, config))


class PerHead(Stacked):
    """Rows in the order (head, which of ours, channel): (H, 3, C, ...) (BLOOM, GPT-NeoX). All have H heads."""

    def split(self, theirs: Tensor, ours: Sequence[Shape], config: ModelConfig) -> Sequence[Tensor]:
        """One of ours is every third block of C rows."""
        blocks = theirs.view(config.n_heads, len(ours), -1, *theirs.shape[1:])
        return [blocks[:, i].flatten(0, 1) for i in range(len(ours))]

    def join(self, ours: Sequence[Tensor], config: ModelConfig) -> Tensor:
        """Blocks of C rows of each in turn."""
        return torch.stack([part.reshape(config.n_heads, -1, *part.shape[1:]) for part in ours], 1).flatten(0, 2)


class PerExpert(Transform):
    """Of each expert `n` matrices of F rows, taken in turn row by row and transposed: (E, ..., n F)."""

    def __init__(self, n: int = 1) -> None:
        """n: how many of ours an expert has in the tensor."""
        self.n = n

    def shape(self, ours: Sequence[Shape]) -> Shape:
        """One axis more, of experts, and the rows last."""
        rows, *rest = ours[0]
        return (len(ours) // self.n, *rest, self.n * rows)

    def split(self, theirs: Tensor, ours: Sequence[Shape], config: ModelConfig) -> Sequence[Tensor]:
        """Every n-th row of an expert is one of ours."""
        return [_turned(expert)[i :: self.n] for expert in theirs for i in range(self.n)]

    def join(self, ours: Sequence[Tensor], config: ModelConfig) -> Tensor:
        """Expert by expert."""
        of_each = (torch.stack(list(ours[i : i + self.n]), 1).flatten(0, 1) for i in range(0, len(ours), self.n))
        return torch.stack([_turned(expert) for expert in of_each])


def _turned(x: Tensor) -> Tensor:
    return x.T if x.dim() == 2 else x


@dataclass(frozen=True)
class Line:
    """One line of a table: their name, our names, and how the one holds the others (`transform`).

    beside   a weight of ours without which the line does not count
    """

    theirs: str
    ours: tuple[str, ...]
    transform: Transform
    beside: str | None = None


def line(theirs: str, *ours: str, transform: Transform | None = None, beside: str | None = None) -> Line:
    """One tensor."""
    return Line(theirs, ours, Same() if transform is None else transform, beside)


def module(theirs: str, *ours: str, transform: Transform | None = None) -> list[Line]:
    """The weight and the bias of one module."""
    return [
        line(f"{theirs}.{leaf}", *(f"{name}.{leaf}" for name in ours), transform=transform)
        for leaf in ("weight", "bias")
    ]


def expand(table: Sequence[Line], names: Collection[str]) -> Iterator[Line]:
    """The lines of a model with these weights, layers numbered. BadValue for a weight that none names."""
    left = set(names)
    for entry in table:
        for theirs, ours in _held_weights(entry, names, left).items():
            left.difference_update(ours)
            yield Line(theirs, tuple(ours), entry.transform)
    if left:
        raise BadValue(f"these files have no place for {', '.join(sorted(left)[:8])}")


def _held_weights(entry: Line, names: Collection[str], left: Collection[str]) -> dict[str, list[str]]:
    """Their names that a line stands for, and which of the weights that are left each holds."""
    pattern = re.compile(re.escape(entry.ours[0]).replace(r"\*", r"(\d+)"))
    matches = [match.groups() for match in map(pattern.fullmatch, names) if match]
    found: dict[str, list[str]] = {}
    for numbers in sorted(matches, key=lambda numbers: tuple(map(int, numbers))):
        ours = [_numbered(name, numbers) for name in entry.ours]
        beside = ours[0] if entry.beside is None else _numbered(entry.beside, numbers)
        if beside in names and all(name in left for name in ours):
            found.setdefault(_numbered(entry.theirs, numbers), []).extend(ours)
    return found


def _numbered(name: str, numbers: Sequence[str]) -> str:
    for number in numbers:
        name = name.replace("*", number, 1)
    return name


__all__ = [
    "Columns",
    "Line",
    "PerExpert",
    "PerHead",
    "Row",
    "Same",
    "Stacked",
    "Transform",
    "Transposed",
    "expand",
    "line",
    "module",
]
