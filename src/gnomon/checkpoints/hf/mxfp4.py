"""Weights of 4 bits in safetensors files, MXFP4, as gpt-oss's experts are published: decoded when they are asked for.

    NAME_blocks   (E, R, G, 16) bytes, two numbers in each, that of the lower four bits first
    NAME_scales   (E, R, G) bytes: 32 numbers are multiplied by 2^(scale - 127)

A number is a sign and three bits, 0, 0.5, 1, 1.5, 2, 3, 4 or 6 (OCP Microscaling Formats 1.0, section 5.3.3). NAME is
here what the transformers library has: matrices (E, 32 G, R) in bfloat16, which holds each number exactly.
"""

import safetensors
import torch
from torch import Tensor

from gnomon.checkpoints.weights import LazyTensor, Weights
from gnomon.errors import BadInput

BLOCKS, SCALES, ZERO = "_blocks", "_scales", 127
MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


class Unpacked(Weights):
    """The weights of files, some of which are packed, as if none were."""

    def __init__(self, packed: Weights) -> None:
        """BadInput for blocks without their scales, and for shapes that are none of this format."""
        super().__init__([])
        self.found, self.packed = dict(packed.found), dict[str, tuple[LazyTensor, LazyTensor]]()
        for name in [name.removesuffix(BLOCKS) for name in packed.found if name.endswith(BLOCKS)]:
            blocks, scales = self.found.pop(name + BLOCKS), self.found.pop(name + SCALES, None)
            fits = scales is not None and len(blocks.shape) == 4 and blocks.shape == (*scales.shape, 16)
            if scales is None or not fits or not blocks.dtype == scales.dtype == "U8":
                raise BadInput(f"{blocks.file}: {name}{BLOCKS} and {name}{SCALES} are no numbers of 4 bits in MXFP4")
            experts, rows, groups, _ = blocks.shape
            self.found[name] = LazyTensor(blocks.file, (experts, 32 * groups, rows), "BF16")
            self.packed[name] = blocks, scales

    def tensor(self, name: str, dtype: torch.dtype | None = None) -> Tensor:
        """A tensor, decoded if it is packed; one expert at a time, so that little more than it is in memory."""
        if name not in self.packed:
            return super().tensor(name, dtype)
        blocks, scales = (_raw(part, name + end) for part, end in zip(self.packed[name], (BLOCKS, SCALES), strict=True))
        out = torch.empty(self.found[name].shape, dtype=dtype or torch.bfloat16)
        for expert, packed, scale in zip(out, blocks, scales, strict=True):
            expert.copy_(decode(packed, scale).T)
        return out


def decode(blocks: Tensor, scales: Tensor) -> Tensor:
    """blocks (R, G, 16) and scales (R, G), bytes -> (R, 32 G) in bfloat16."""
    table = torch.tensor([*MAGNITUDES, *(-x for x in MAGNITUDES)])
    numbers = table[torch.stack([blocks & 15, blocks >> 4], -1).long()].flatten(-2)  # (R, G, 32)
    return torch.ldexp(numbers, scales[..., None].int() - ZERO).flatten(1).bfloat16()


def _raw(stored: LazyTensor, name: str) -> Tensor:
    with safetensors.safe_open(stored.file, framework="pt") as opened:
        tensor: Tensor = opened.get_tensor(name)
    return tensor


def unpack(weights: Weights) -> Weights:
    """The same weights, where some are packed decoded when they are asked for."""
    return Unpacked(weights) if any(name.endswith(BLOCKS) for name in weights.found) else weights


__all__ = ["Unpacked", "decode", "unpack"]
