"""One step of training: gradient of the mean loss, clipped, one step of the optimizer."""

from contextlib import AbstractContextManager, nullcontext
from math import inf

import torch
from torch import nn

from gnomon.errors import BadValue
from gnomon.train.loss import Loss
from gnomon.train.task import Batch


class NotFinite(BadValue):
    """The loss or its gradient overflowed; the weights are as they were before the step."""


def training_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: Batch,
    lr: float,
    clip: float | None,
    parts: int = 1,
    dtype: torch.dtype = torch.float32,
) -> Loss:
    """Take one optimizer step on a batch that is on the model's device; returns the loss before it, detached.

    lr     the learning rate of this step
    clip   the longest gradient allowed, as the norm over all parameters (Pascanu et al. 2013, arXiv:1211.5063), or None
    parts  pieces the rows are computed in, to save memory; every target weighs the same, whichever piece it is in
    dtype  of the products: bfloat16 runs the forward under autocast, float32 and float64 in the model's own dtype

    Raises NotFinite, and leaves the weights alone, where the loss or the gradient is infinite or not a number.
    """
    for group in optimizer.param_groups:
        group["lr"] = lr
    optimizer.zero_grad(set_to_none=True)
    device, targets = next(model.parameters()).device, max(1, batch.targets)
    losses = []
    for piece in batch.pieces(parts):
        with mixed_precision(device, dtype):
            loss = piece.loss(model)
        torch.autograd.backward(loss.total / targets)  # a piece's activations are freed before the next piece
        losses.append(loss.detach())
    loss = sum(losses[1:], losses[0])
    norm = nn.utils.clip_grad_norm_(model.parameters(), inf if clip is None else clip)
    if not torch.isfinite(loss.total + norm):
        raise NotFinite(
            f"the loss is {loss.mean:g} and the norm of its gradient {norm:g}, at a learning rate of {lr:g}"
        )
    optimizer.step()
    return loss


def mixed_precision(device: torch.device, dtype: torch.dtype) -> AbstractContextManager[object]:
    """Autocast to a dtype below float32; nothing for float32 and float64."""
    return torch.autocast(device.type, dtype) if dtype.itemsize < 4 else nullcontext()


__all__ = ["NotFinite", "mixed_precision", "training_step"]
