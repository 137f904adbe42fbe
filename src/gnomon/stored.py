"""Stored: a weight matrix kept in fewer bits than it is computed with.

float16, bfloat16   16 bits a weight; what a checkpoint of that type holds loses nothing
int8                blocks of 32 weights: a float16 scale d and 32 whole numbers q, w = d q (GGUF's Q8_0; 8.5 bits)
int4                the same with numbers from -8 to 7 (GGUF's Q4_0; 4.5 bits)

Products are float32, unless the model is cast: of few rows straight from the blocks (`gnomon.native`), of many from the
matrix, which is unpacked for them.
"""

from collections.abc import Callable
from typing import Self, get_args

import torch
from torch import Tensor, nn

from gnomon.errors import BadValue, must_be
from gnomon.native import BLOCK, BLOCK_BYTES, STORED_AS, Kind, product
from gnomon.shapes import Float, Int

_GGUF = {"int8": "Q8_0", "int4": "Q4_0"}


class Stored(nn.Module):
    """A matrix (out, in), in the place of a layer's weight."""

    blocks: Tensor

    def __init__(self, weight: Float, kind: Kind) -> None:
        """weight (out, in), of any floating type; blocks need a width of whole blocks."""
        super().__init__()
        must_be("kind", kind, Kind)
        if not can_be_stored(weight, kind):
            raise BadValue(f"{kind} stores blocks of {BLOCK} weights, and rows of {weight.shape[1]} are none")
        self.kind: Kind = kind
        self.shape = weight.shape
        self.dtype = torch.float32  #: of what it gives
        self.register_buffer("blocks", pack(weight.detach(), kind))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """A cast of the model changes what it gives and leaves the form alone; a device is followed."""
        example = fn(torch.empty(0, device=self.device, dtype=self.dtype))
        self.blocks, self.dtype = self.blocks.to(example.device), example.dtype
        return self

    @property
    def device(self) -> torch.device:
        """Where it lies."""
        return self.blocks.device

    def dense(self) -> Float:
        """The matrix (out, in)."""
        return unpack(self.blocks, self.kind).to(self.dtype)

    def rows(self, ids: Int) -> Float:
        """Rows of the matrix: ids (...) -> (..., in)."""
        return unpack(self.blocks[ids], self.kind).to(self.dtype)

    def product(self, x: Float, bias: Float | None = None) -> Float | None:
        """x (..., in) -> x W^T + b, (..., out), straight from the blocks; None where the whole matrix is needed."""
        return product(x, self.blocks, bias, self.shape[0], self.kind)

    def extra_repr(self) -> str:
        """Shown by print(module)."""
        return f"{self.shape[0]} x {self.shape[1]}, {self.kind}"


def matrix(weight: Tensor | Stored) -> Float:
    """A layer's weight, whole, however it is kept."""
    return weight.dense() if isinstance(weight, Stored) else weight


def can_be_stored(weight: Float, kind: Kind) -> bool:
    """Whether a matrix can be stored so."""
    return weight.dim() == 2 and (kind not in _GGUF or weight.shape[1] % BLOCK == 0)


def pack(weight: Float, kind: Kind) -> Tensor:
    """The matrix in its stored form: (out, in) of a floating type, or (out, bytes of its blocks)."""
    if kind not in _GGUF:
        return weight.to(STORED_AS[kind]).contiguous()
    import gguf  # takes long to import

    blocks = gguf.quants.quantize(weight.float().cpu().numpy(), gguf.GGMLQuantizationType[_GGUF[kind]])
    return torch.from_numpy(blocks).to(weight.device)


def unpack(blocks: Tensor, kind: Kind) -> Float:
    """Stored rows (..., stored width) as float32 (..., in)."""
    if kind not in _GGUF:
        return blocks.float()
    parts = blocks.view(*blocks.shape[:-1], -1, BLOCK_BYTES[kind])
    scale = parts[..., :2].contiguous().view(torch.float16).float()
    if kind == "int8":
        numbers = parts[..., 2:].contiguous().view(torch.int8)
    else:
        numbers = torch.cat([parts[..., 2:] & 15, parts[..., 2:] >> 4], -1).to(torch.int8) - 8
    return (numbers.float() * scale).flatten(-2)


@torch.no_grad()
def store(model: nn.Module, kind: Kind) -> None:
    """Keep every weight matrix of linear layers, tables and heads of this model in fewer bits, in place. What has no
    such form (norms, biases, learned positions, rows that are no whole blocks) stays as it is.

    The model then runs; it can be neither trained nor saved. Raises BadValue for a form that there is not.
    """
    must_be("weights", kind, Kind, f"one of {', '.join(get_args(Kind))}")
    if kind == "float32":
        return
    seen: dict[int, Stored] = {}  # a tie stays a tie
    for part in list(model.modules()):
        weight = part._parameters.get("weight")
        if getattr(part, "stores_weight", False) and weight is not None and can_be_stored(weight, kind):
            if id(weight) not in seen:
                seen[id(weight)] = Stored(weight, kind)
            del part._parameters["weight"]
            part.weight = seen[id(weight)]


def check_whole(model: nn.Module) -> None:
    """Raise BadValue for a model whose weights were stored in fewer bits: they are not what was trained."""
    for name, part in model.named_modules():
        if isinstance(part, Stored):
            raise BadValue(
                f"{name} is stored in {part.kind}, for running only: load the model without weights={part.kind!r} to "
                "save, convert or train it"
            )


__all__ = ["BLOCK", "Stored", "can_be_stored", "check_whole", "matrix", "pack", "store", "unpack"]
