"""One step of training: gradient of the mean loss, clipped, one step of the optimizer."""

from collections.abc import Callable, Iterable
from math import inf

import torch
from torch import Tensor, nn

from gnomon.train.health import Health, HealthSettings, NotFinite
from gnomon.train.loss import Loss
from gnomon.train.optim import Optimizer
from gnomon.train.precision import mixed_precision
from gnomon.train.ranks import ALONE, Ranks
from gnomon.train.task import Batch
from gnomon.train.whole import whole_tensor

Judge = Callable[[float, float, float], None]  # of loss, norm of its gradient and rate; raises where they are bad


class Abandoned(Exception):
    """A step was given up between two pieces of its batch, because somebody asked training to stop."""


def must_be_finite(loss: float, norm: float, lr: float) -> None:
    """Raise NotFinite for an infinite loss or gradient, or one that is no number."""
    Health().check(loss, norm, lr, HealthSettings())


def training_step(
    model: nn.Module,
    optimizer: Optimizer,
    batch: Batch,
    lr: float,
    clip: float | None,
    parts: int = 1,
    dtype: torch.dtype = torch.float32,
    *,
    scale: float = 1.0,
    judge: Judge = must_be_finite,
    stop: Callable[[], object] = lambda: None,
    ranks: Ranks = ALONE,
) -> Loss:
    """Take one optimizer step on a batch that is on the model's device; returns the loss before it, detached.

    lr     the learning rate of this step
    clip   the longest gradient allowed, as the norm over all parameters (Pascanu et al. 2013, arXiv:1211.5063), or None
    parts  pieces the rows are computed in, to save memory; every target weighs the same, whichever piece it is in
    dtype  of the products: below float32 the forward runs under autocast, float32 and float64 in the model's own dtype
    scale  what the loss is multiplied by for the backward pass, so that gradients of float16 do not vanish
    judge  raises where the loss and the norm of the gradient are such that the weights must stay as they are
    stop   asked between two pieces; where it returns something, Abandoned is raised
    ranks  processes that share the rows of the batch

    Raises NotFinite, and leaves the weights alone, where the loss or the gradient is infinite or not a number.
    """
    for group in optimizer.param_groups:
        group["lr"] = lr
    optimizer.zero_grad(set_to_none=True)
    loss = ranks.total(_backward(model, ranks.share(batch, parts), batch.targets, dtype, scale, stop, ranks))
    norm = _clip([p for p in model.parameters() if p.grad is not None], clip, scale)
    size, length = torch.stack([loss.mean, norm.to(loss.total)]).tolist()
    judge(size, length, lr)
    optimizer.step()
    return loss


def _backward(
    model: nn.Module,
    pieces: list[Batch],
    targets: int,
    dtype: torch.dtype,
    scale: float,
    stop: Callable[[], object],
    ranks: Ranks,
) -> Loss:
    """The gradient of the mean loss over `targets`, in the weights' `grad`; returns the loss of these pieces."""
    device = next(model.parameters()).device
    losses: list[Loss] = []
    for n, piece in enumerate(pieces):
        if losses and stop():
            raise Abandoned
        with ranks.synced(model, last=n + 1 == len(pieces)):
            with mixed_precision(device, dtype):
                loss = piece.loss(model)
            # Processes average their gradients, so each counts as often as there are processes.
            torch.autograd.backward(loss.total / max(1, targets) * (scale * ranks.size))  # frees a piece's activations
        losses.append(loss.detach())
    return sum(losses[1:], losses[0])


def _clip(weights: Iterable[nn.Parameter], clip: float | None, scale: float) -> Tensor:
    """The norm of the gradient, which is no longer than `clip` afterwards and has no scale any more."""
    weights = list(weights)
    if scale != 1:
        torch._foreach_div_([p.grad for p in weights if p.grad is not None], scale)
    return whole_tensor(nn.utils.clip_grad_norm_(weights, inf if clip is None else clip))


__all__ = ["Abandoned", "NotFinite", "mixed_precision", "training_step"]
