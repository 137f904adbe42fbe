"""AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101) with decay on matrices only."""

import torch
from torch import nn

from gnomon.embed.table import TokenEmbedding
from gnomon.positions.base import PositionEncoding


def adamw(
    model: nn.Module, lr: float, weight_decay: float = 0.1, betas: tuple[float, float] = (0.9, 0.95)
) -> torch.optim.AdamW:
    """An optimizer that holds every parameter once. Decayed: weights of linear layers. Not decayed: biases, norms,
    embedding tables (tied or not) and whatever an encoding learns."""
    tables = [part for part in model.modules() if isinstance(part, TokenEmbedding | PositionEncoding)]
    spared = {id(p) for table in tables for p in table.parameters()}
    parameters = [p for p in model.parameters() if p.requires_grad]  # a shared one comes once
    decayed = [p for p in parameters if p.dim() >= 2 and id(p) not in spared]
    rest = [p for p in parameters if p.dim() < 2 or id(p) in spared]
    groups = [{"params": decayed, "weight_decay": weight_decay}, {"params": rest, "weight_decay": 0.0}]
    # One pass over all weights instead of a dozen small operators on each, which cost a small model 4 % of a step.
    fused = all(p.device.type in ("cpu", "cuda") and p.is_floating_point() for p in parameters)
    return torch.optim.AdamW([g for g in groups if g["params"]], lr=lr, betas=betas, fused=fused or None)


__all__ = ["adamw"]
