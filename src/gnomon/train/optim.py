"""Optimizers: AdamW with decay on matrices only, or Muon for the matrices and AdamW for the rest.

AdamW: Loshchilov and Hutter 2019, arXiv:1711.05101. Muon: the momentum of a matrix, orthogonalised by a Newton-Schulz
iteration (Jordan et al. 2024), scaled to the size of AdamW's steps (Liu et al. 2025, arXiv:2502.16982, section 2.2), so
that both take the same learning rate.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from gnomon.embed import Untied
from gnomon.embed.table import TokenEmbedding
from gnomon.errors import BadValue
from gnomon.kinds import Setting
from gnomon.positions.base import PositionEncoding


@dataclass(frozen=True, kw_only=True)
class OptimizerSettings:
    """Optimizer"""

    optimizer: Annotated[
        Literal["adamw", "muon"],
        Setting("of the matrices; everything else takes adamw", source="arXiv:1711.05101, arXiv:2502.16982 (muon)"),
    ] = "adamw"
    weight_decay: Annotated[float, Setting("decay of the matrices, not of tables, norms and biases", least=0)] = 0.1
    ema: Annotated[
        float | None,
        Setting(
            "decay of an exponential average of the weights, which is measured and kept beside them",
            above=0,
            below=1,
            source="Polyak and Juditsky 1992",
        ),
    ] = None


class Optimizer(Protocol):
    """What training needs of an optimizer; those of torch are some."""

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The weights, with the settings of each group of them; "lr" is set before each step."""

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""

    def step(self) -> Any:
        """Change the weights."""


class Several:
    """Optimizers that each hold some of the weights, as one."""

    def __init__(self, *parts: torch.optim.Optimizer) -> None:
        self.parts = parts

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """Those of all."""
        return [group for part in self.parts for group in part.param_groups]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        for part in self.parts:
            part.zero_grad(set_to_none)

    def step(self) -> None:
        """Take one step with each."""
        for part in self.parts:
            part.step()


class Groups(NamedTuple):
    """The weights that are trained, each once: a tied matrix is one weight."""

    matrices: list[Tensor]  # of linear layers inside the blocks
    heads: list[Tensor]  # other decayed ones: output matrices, and what has more than two axes
    rest: list[Tensor]  # biases, norms, embedding tables (tied or not), and whatever an encoding learns


def groups(model: nn.Module) -> Groups:
    """The weights of a model by how they are trained."""
    parts = list(model.modules())
    spared = _ids(part for part in parts if isinstance(part, TokenEmbedding | PositionEncoding))
    outputs = _ids(part for part in parts if isinstance(part, Untied))
    found = Groups([], [], [])
    for p in model.parameters():  # a shared one comes once
        if not p.requires_grad:
            continue
        if p.dim() < 2 or id(p) in spared:
            found.rest.append(p)
        else:
            (found.matrices if p.dim() == 2 and id(p) not in outputs else found.heads).append(p)
    return found


def optimizer_of(model: nn.Module, settings: OptimizerSettings, lr: float) -> Optimizer:
    """The optimizer that the settings name. BadValue where this torch has none of that name."""
    if settings.optimizer == "adamw":
        return adamw(model, lr, settings.weight_decay)
    if not hasattr(torch.optim, "Muon"):
        raise BadValue(f"torch {torch.__version__} has no Muon: install torch 2.9 or newer, or choose adamw")
    matrices, heads, rest = groups(model)
    if not matrices:
        raise BadValue("muon trains matrices, and this model has none that are trained: choose adamw")
    muon = torch.optim.Muon(matrices, lr=lr, weight_decay=settings.weight_decay, adjust_lr_fn="match_rms_adamw")
    return Several(muon, _adamw(heads, rest, lr, settings.weight_decay)) if heads or rest else muon


def adamw(
    model: nn.Module, lr: float, weight_decay: float = 0.1, betas: tuple[float, float] = (0.9, 0.95)
) -> torch.optim.AdamW:
    """An optimizer that holds every parameter once. Decayed: weights of linear layers. Not decayed: biases, norms,
    embedding tables (tied or not) and whatever an encoding learns."""
    spared = {id(p) for p in groups(model).rest}
    trained = [p for p in model.parameters() if p.requires_grad]
    decayed, rest = [p for p in trained if id(p) not in spared], [p for p in trained if id(p) in spared]
    return _adamw(decayed, rest, lr, weight_decay, betas)


def _adamw(
    decayed: list[Any],
    rest: list[Any],
    lr: float,
    weight_decay: float,
    betas: tuple[float, float] = (0.9, 0.95),
) -> torch.optim.AdamW:
    given = [{"params": decayed, "weight_decay": weight_decay}, {"params": rest, "weight_decay": 0.0}]
    # One pass over all weights instead of a dozen small operators on each, which cost a small model 4 % of a step.
    fused = all(p.device.type in ("cpu", "cuda") and p.is_floating_point() for p in (*decayed, *rest))
    return torch.optim.AdamW([g for g in given if g["params"]], lr=lr, betas=betas, fused=fused or None)


def parts_of(optimizer: Optimizer) -> tuple[torch.optim.Optimizer, ...]:
    """The optimizers of torch that one is made of."""
    if isinstance(optimizer, Several):
        return optimizer.parts
    assert isinstance(optimizer, torch.optim.Optimizer)
    return (optimizer,)


def _ids(parts: Iterator[nn.Module]) -> set[int]:
    return {id(p) for part in parts for p in part.parameters()}


__all__ = ["Groups", "Optimizer", "OptimizerSettings", "Several", "adamw", "groups", "optimizer_of", "parts_of"]
