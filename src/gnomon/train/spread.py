"""A model on several processes: whole on each (DDP), or a share of it (FSDP2), and made faster or smaller in memory.

DistributedDataParallel: Li et al. 2020, arXiv:2006.15704. fully_shard: Zhao et al. 2023, arXiv:2304.11277. Each block
is a unit of its own; the tables at both ends, tied or not, and the position encodings, which all blocks read, belong to
the model. Weights stay in float32 and products run under autocast, so nothing casts a position on its way into a block.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from gnomon.checkpoints.weights import assign_weights
from gnomon.models import Model
from gnomon.models.meta import build_on_meta
from gnomon.models.stack import Stack
from gnomon.train.config import TrainConfig
from gnomon.train.lora import add_lora, lora_layers, merged_weights
from gnomon.train.ranks import Ranks


def prepare(model: nn.Module, inner: Model, config: TrainConfig, ranks: Ranks) -> nn.Module:
    """What is called in training: the model as it is, or wrapped, such that this process computes its share."""
    if config.lora_rank is not None and not lora_layers(inner):
        torch.manual_seed(config.seed)
        add_lora(inner, config.lora_rank, config.lora_alpha, config.lora_targets)
    stacks = [part for part in inner.modules() if isinstance(part, Stack)]
    for stack in stacks:
        stack.gradient_checkpointing = config.gradient_checkpointing
    shared = ranks.size > 1 and config.parallel == "fsdp"
    if config.compile:
        for part in (block for stack in stacks for block in stack.blocks) if shared else (inner,):
            part.compile()
    if ranks.size == 1:
        return model
    if shared:
        return shard(inner, stacks, ranks)
    unused = inner.config.mixture is not None  # an expert that no token chose
    return nn.parallel.DistributedDataParallel(model, find_unused_parameters=unused)


def shard(model: Model, stacks: list[Stack], ranks: Ranks) -> Model:
    """The model itself, which keeps a share of its weights here and gathers those of a block while it computes it."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(next(model.parameters()).device.type, (ranks.size,))
    for stack in stacks:
        for block in stack.blocks:
            fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


@contextmanager
def at_hand(model: nn.Module) -> Iterator[None]:
    """Within the block a shared model's own weights are whole here, for methods besides `forward`, as generation has;
    those of blocks come and go. Every process must enter it."""
    if not is_sharded(model):
        yield
        return
    shared: Any = model
    shared.unshard()
    try:
        yield
    finally:
        shared.reshard()


def is_sharded(model: nn.Module) -> bool:
    """Whether this process holds only a share of the weights."""
    return any(hasattr(part, "unshard") for part in model.modules())


@torch.no_grad()
def gather(model: Model) -> Model:
    """A plain model with all weights, on the CPU: those that are shared gathered, changes of low rank added. The model
    itself where it is plain and whole. Every process must ask."""
    if not is_sharded(model) and not lora_layers(model):
        return model
    weights = {name: tensor.cpu() for name, tensor in merged_weights(model).items()}
    plain = build_on_meta(model.config).to(next(iter(weights.values())).dtype)
    assign_weights(plain, weights, torch.device("cpu"))
    for name in ("tokenizer", "labels", "prompts", "ends", "start", "first"):
        setattr(plain, name, getattr(model, name))
    return plain


__all__ = ["at_hand", "gather", "is_sharded", "prepare", "shard"]
