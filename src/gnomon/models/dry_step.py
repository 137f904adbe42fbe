"""A training step without memory: every tensor has a shape only, so what a step allocates and multiplies is counted.

What is counted is the forward, the loss and the backward pass of the model itself, on the meta device. Attention is
computed as torch's fused kernel for CPUs does: no T x S matrix, except with dropout or under a learned bias.
Korthikanti et al. 2022, arXiv:2205.05198, derive such numbers for one architecture by hand.
"""

import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode
from torch.utils.weak import WeakIdKeyDictionary

from gnomon.errors import must_be
from gnomon.kinds import Setting
from gnomon.models.config import ModelConfig
from gnomon.models.meta import build_on_meta

WIDE = 4  # bytes of a float32, which weights, gradients and moments are
_ATTENTION = F.scaled_dot_product_attention
_COUNT = Annotated[int, Setting("rows, and tokens of each", least=1, most=2**31)]


@dataclass(frozen=True)
class Training:
    """Bytes and operations of one training step of `batch` rows of `length` tokens.

    copies        of the weights in the products' dtype, which autocast keeps; none in float32
    activations   what the peak of memory holds besides all these
    flops         of all matrix products, forward and backward; a multiplication and its addition are two
    """

    batch: int
    length: int
    dtype: torch.dtype
    weights: int
    gradients: int
    optimizer: int
    copies: int
    activations: int
    flops: int

    @property
    def states(self) -> int:
        """Bytes that do not depend on the batch, which FSDP2 shares among devices."""
        return self.weights + self.gradients + self.optimizer + self.copies

    @property
    def peak(self) -> int:
        """Most bytes held at once, from the second step on."""
        return self.states + self.activations

    @property
    def flops_per_token(self) -> float:
        """Operations of a step for each token of the batch."""
        return self.flops / (self.batch * self.length)


def dry_step(config: ModelConfig, batch: int, length: int, dtype: torch.dtype = torch.float32) -> Training:
    """Take a step with AdamW of a model that has no memory. BadValue for what is no count, and for a length that the
    model cannot read."""
    must_be("batch", batch, _COUNT)
    must_be("length", length, _COUNT)
    model = build_on_meta(config).train().to(dtype)
    ids = torch.zeros(batch, length, dtype=torch.long, device="meta")
    given = (ids, ids) if config.architecture == "encoder-decoder" else (ids,)
    counted = FlopCounterMode(display=False)
    with _FusedAttention(), _Held() as held, counted:
        out = model(*given).flatten(0, -2).float()
        loss = F.cross_entropy(out, torch.zeros(len(out), dtype=torch.long, device="meta"), reduction="sum")
        del out
        torch.autograd.backward(loss)
    parameters = sum(p.numel() for p in model.parameters())
    copies = 0 if dtype.itemsize >= WIDE else parameters * dtype.itemsize
    at_rest = sum(p.grad.nbytes for p in model.parameters() if p.grad is not None)
    wide = parameters * max(WIDE, dtype.itemsize)
    return Training(batch, length, dtype, wide, wide, 2 * wide, copies, held.peak - at_rest, counted.get_total_flops())


class _Held(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of storages that were made inside and are still held, and the most there ever were."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.peak = 0
        self._known = WeakIdKeyDictionary()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """What torch asks of each operation."""
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, Tensor):
                self._count(tensor.untyped_storage())
        self.peak = max(self.peak, self.now)
        return out

    def _count(self, storage: torch.UntypedStorage) -> None:
        if storage not in self._known:
            self._known[storage] = True
            self.now += storage.nbytes()
            weakref.finalize(storage, self._free, storage.nbytes())

    def _free(self, n_bytes: int) -> None:
        self.now -= n_bytes


class _FusedAttention(TorchFunctionMode):
    """On the meta device torch would compute attention by its definition, scores and all; here by its kernel."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """What torch asks before each of its functions."""
        given = dict(kwargs or {})
        if func is not _ATTENTION or not _fusible(*args, **given):
            return func(*args, **given)
        mask = given.get("attn_mask")
        if mask is not None and mask.dtype == torch.bool:
            mask = torch.empty_like(mask, dtype=args[0].dtype)
        fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        return fused(*args, 0.0, given.get("is_causal", False), attn_mask=mask, scale=given.get("scale"))[0]


def _fusible(
    q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0, **other: Any
) -> bool:
    """Whether torch's fused kernel for CPUs takes this; it has no gradient of what is added, and no dropout."""
    learned = attn_mask is not None and attn_mask.requires_grad
    return not dropout_p and not learned and q.shape[1] == k.shape[1] and q.shape[-1] == k.shape[-1] == v.shape[-1]


__all__ = ["Training", "dry_step"]
