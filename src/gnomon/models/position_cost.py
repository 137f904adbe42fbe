"""What a position encoding costs, counted: operations and bytes of a small model with it, less those without any."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gnomon.attention import watch
from gnomon.models.decoder_only import DecoderOnly
from gnomon.positions import NoPE, PositionEncoding, Spec
from gnomon.positions.kinship import SIZES, parameters

#: operations of torch that compute nothing
MEMORY = ("_unsafe_view", "empty", "empty_like", "empty_strided", "new_empty", "detach")
LENGTH = 512  #: tokens that are read, and then held when one more is written


@dataclass(frozen=True)
class PositionCost:
    """What an encoding adds to one layer of width 512 with 8 heads.

    parameters   learned numbers, however many layers there are
    reading      operations for each of the tokens of a text that is read at once
    writing      operations for one token written after as many
    of_reading, of_writing   the same as a share of what the layer costs without position
    cached       bytes that a cache keeps of a token; cached_without: those without position
    kernel       the attention kernel that reads a whole text
    """

    parameters: int | None
    reading: float
    writing: float
    of_reading: float
    of_writing: float
    cached: float
    cached_without: float
    kernel: str


def position_cost(cls: type[PositionEncoding]) -> PositionCost | None:
    """Counted on this machine, without a clock; None for an encoding that sizes alone are not enough to build."""
    if parameters(cls) is None:
        return None
    reading, writing, cached, kernel = _count(Spec(cls))
    base_reading, base_writing, base_cached, _ = _count(Spec(NoPE))
    added = (reading - base_reading, writing - base_writing)
    shares = (reading / base_reading - 1, writing / base_writing - 1)
    return PositionCost(parameters(cls), *added, *shares, cached, base_cached, kernel)


@torch.no_grad()
def _count(spec: Spec) -> tuple[float, float, float, str]:
    """Operations a token of reading LENGTH of them and of writing the next, bytes cached a token, and the kernel."""
    d_model, n_heads, most = SIZES["d_model"], SIZES["n_heads"], SIZES["max_positions"]
    model = DecoderOnly(2, d_model, 1, n_heads, position=spec, max_positions=most).eval()
    cache, ids = model.cache(), torch.zeros(1, LENGTH, dtype=torch.long)
    with watch() as ran:
        read = operations(lambda: model(ids, cache=cache))
    held = sum(x.nbytes for x in _tensors(vars(cache)) if x.is_floating_point()) / LENGTH
    written = operations(lambda: model(ids[:, :1], cache=cache))
    return read / LENGTH, float(written), held, ran[0]


def _tensors(x: Any) -> list[torch.Tensor]:
    """All tensors in what a cache holds."""
    if isinstance(x, torch.Tensor):
        return [x]
    parts = x.values() if isinstance(x, dict) else x if isinstance(x, tuple | list) else ()
    return [tensor for part in parts for tensor in _tensors(part)]


def operations(run: Callable[[], object]) -> int:
    """How many numbers torch computes: two for each product and sum of a matrix product, one for any other result. What
    only looks at memory in another way is no operation."""
    counts: list[int] = []

    def counted(mode: object, func: Any, types: object, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        counts.append(_operations(func, [x for x in args if isinstance(x, torch.Tensor)], out))
        return out

    counting: Any = type("Counting", (TorchDispatchMode,), {"__torch_dispatch__": counted})
    with counting():
        run()
    return sum(counts)


def _operations(func: Any, given: list[torch.Tensor], out: Any) -> int:
    """Those of one call of torch."""
    name = func.overloadpacket.__name__
    if "scaled_dot_product" in name:
        q, k, v = given[:3]
        return 2 * math.prod(q.shape[:-1]) * k.shape[-2] * (q.shape[-1] + v.shape[-1])
    if name in ("mm", "bmm", "addmm", "baddbmm"):
        return int(2 * out.numel() * given[-2].shape[-1])
    return 0 if func.is_view or name in MEMORY else sum(x.numel() for x in _tensors(out))


__all__ = ["PositionCost", "operations", "position_cost"]
