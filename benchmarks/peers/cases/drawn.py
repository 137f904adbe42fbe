"""Small models with weights so large that faults show: with the usual small ones most change the logits too little."""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import nn

#: makes a model, or a Target of one
Case = Callable[[], Any]
Module = TypeVar("Module", bound=nn.Module)


def drawn(build: Callable[[], Module], std: float = 0.3, seed: int = 0) -> Module:
    """What `build` makes, in evaluation mode: matrices drawn anew, vectors (biases, gains) with noise.

    What is never trained (tables of sinusoids) stays as it is.
    """
    torch.manual_seed(seed)
    model = build().eval()
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in filter(lambda weight: weight.requires_grad, model.parameters()):
            noise = torch.randn(weight.shape, generator=rng).to(weight)
            if weight.dim() > 1:
                weight.copy_(std * noise)
            else:
                weight.add_(0.1 * noise)
    return model
