"""LoRA: fine-tune a model by low-rank changes to its frozen matrices (Hu et al. 2022, arXiv:2106.09685).

    y = x W^T + (alpha / r) x A^T B^T          W (out, in) frozen, A (r, in) random, B (out, r) zero at first

So the model starts as it was. Merged, a matrix is W + (alpha / r) B A, and the model is a plain one again.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, TypeVar

import torch
from torch import Tensor, nn

from gnomon.errors import BadValue
from gnomon.kinds import Setting
from gnomon.linear import Linear
from gnomon.models import Model
from gnomon.models.meta import build_on_meta
from gnomon.models.stack import Stack
from gnomon.shapes import Float
from gnomon.train.whole import whole_tensor

M = TypeVar("M", bound=Model)
A, B = "lora_a", "lora_b"
ALL = ("q", "k", "v", "out", "gate", "up", "down")  # Dettmers et al. 2023, arXiv:2305.14314, section 4: adapt them all


@dataclass(frozen=True, kw_only=True)
class LoRASettings:
    """Fine-tuning by low-rank changes"""

    lora_rank: Annotated[
        int | None,
        Setting("rank of the changes; none trains all weights", least=1, most=2**20, source="arXiv:2106.09685"),
    ] = None
    lora_alpha: Annotated[float, Setting("the changes are multiplied by lora_alpha / lora_rank", above=0)] = 16.0
    lora_targets: Annotated[tuple[str, ...], Setting("linear layers that change, by their names in a block")] = ALL


class LoRALinear(Linear):
    """A linear layer whose weight is frozen, and a change of low rank to it that is trained."""

    stores_weight = False

    def __init__(self, plain: Linear, rank: int, scale: float) -> None:
        """Share the weight and the bias of a plain layer. scale: alpha / r."""
        nn.Module.__init__(self)
        self.in_features, self.out_features, self.scale = plain.in_features, plain.out_features, scale
        self.weight, self.bias = plain.weight, plain.bias
        self.lora_a = nn.Parameter(plain.weight.new_empty(rank, plain.in_features))
        self.lora_b = nn.Parameter(plain.weight.new_zeros(plain.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_a, a=math.sqrt(5))

    def forward(self, x: Float) -> Float:
        """x (..., in_features) -> (..., out_features)."""
        change: Float = nn.functional.linear(nn.functional.linear(x, self.lora_a), self.lora_b)
        return super().forward(x) + self.scale * change


def add_lora(model: M, rank: int = 8, alpha: float = 16.0, targets: tuple[str, ...] = ALL) -> M:
    """Freeze a model, in place, and give each layer of its blocks whose name is in `targets` a change of this rank.

    BadValue where the model has some already, or none of these layers.
    """
    if lora_layers(model):
        raise BadValue("this model has LoRA layers already: merge them first (merge_lora)")
    known = sorted({name.rpartition(".")[2] for name in _linears(model)})
    if unknown := [target for target in targets if target not in (*known, *ALL)]:
        raise BadValue(f"no layer of this model is called {', '.join(unknown)}: its blocks have {', '.join(known)}")
    chosen = {name: part for name, part in _linears(model).items() if name.rpartition(".")[2] in targets}
    if not chosen:
        raise BadValue(f"none of {', '.join(targets)} is a layer of this model: its blocks have {', '.join(known)}")
    model.requires_grad_(False)
    for name, part in chosen.items():
        model.set_submodule(name, LoRALinear(part, rank, alpha / rank))
    return model


@torch.no_grad()
def merge_lora(model: M) -> M:
    """Add the changes of a model to its weights, in place: it is a plain model again, and all of it can be trained."""
    for name, part in lora_layers(model).items():
        plain = Linear(part.in_features, part.out_features, bias=part.bias is not None, device="meta")
        plain.weight, plain.bias = part.weight, part.bias
        plain.weight += change_of(part)
        model.set_submodule(name, plain)
    model.requires_grad_(True)
    return model


def lora_layers(model: nn.Module) -> dict[str, LoRALinear]:
    """The layers with a change, by name."""
    return {name: part for name, part in model.named_modules() if isinstance(part, LoRALinear)}


def change_of(part: LoRALinear) -> Tensor:
    """(alpha / r) B A, (out, in), computed in float32 or wider."""
    a, b = whole_tensor(part.lora_a), whole_tensor(part.lora_b)
    wide = torch.promote_types(a.dtype, torch.float32)
    return (part.scale * (b.to(wide) @ a.to(wide))).to(a.dtype)


def merged_weights(model: Model) -> dict[str, Tensor]:
    """The weights that the model would have if it were merged; it stays as it is."""
    weights = {name: whole_tensor(tensor) for name, tensor in model.state_dict().items()}
    for name, part in lora_layers(model).items():
        del weights[f"{name}.{A}"], weights[f"{name}.{B}"]
        weights[f"{name}.weight"] = weights[f"{name}.weight"] + change_of(part)
    return weights


def lora_weights(model: Model) -> dict[str, Tensor]:
    """The matrices A and B, whole, by name."""
    parts = lora_layers(model).items()
    return {f"{name}.{which}": whole_tensor(getattr(part, which)) for name, part in parts for which in (A, B)}


def lora_shell(model: Model, changes: Mapping[str, Tensor]) -> Model:
    """A model of the same config that has these matrices A and B, and no other weight."""
    shell = build_on_meta(model.config)
    for name, part in lora_layers(model).items():
        plain = shell.get_submodule(name)
        assert isinstance(plain, Linear)
        changed = LoRALinear(plain, part.lora_a.shape[0], part.scale)
        changed.lora_a, changed.lora_b = (nn.Parameter(changes[f"{name}.{which}"]) for which in (A, B))
        shell.set_submodule(name, changed)
    return shell


def _linears(model: Model) -> dict[str, Linear]:
    """The linear layers of the blocks, by name."""
    return {
        f"{stack}.blocks.{name}": part
        for stack, parts in _stacks(model)
        for name, part in parts.blocks.named_modules()
        if isinstance(part, Linear)
    }


def _stacks(model: Model) -> Iterator[tuple[str, Stack]]:
    return ((name, part) for name, part in model.named_modules() if isinstance(part, Stack))


__all__ = [
    "A",
    "B",
    "LoRALinear",
    "LoRASettings",
    "add_lora",
    "change_of",
    "lora_layers",
    "lora_shell",
    "lora_weights",
    "merge_lora",
    "merged_weights",
]
