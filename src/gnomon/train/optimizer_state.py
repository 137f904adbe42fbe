"""What an optimizer keeps of each weight, as files: by the name of the weight, whatever order it is held in.

Processes that share the weights write a file each, through torch.distributed.checkpoint, as safetensors with the place
of every piece in its header. Any number of processes reads these again, one included, and nothing is pickled.
"""

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from gnomon.checkpoints.native import plain_name, read_tensors, write_tensors
from gnomon.errors import BadInput
from gnomon.train.lora import A, B, lora_layers
from gnomon.train.optim import Optimizer, parts_of
from gnomon.train.ranks import ALONE, Ranks
from gnomon.train.spread import is_sharded

OPTIMIZER, SHARDS = "optimizer.safetensors", "shards"
KEPT = {"AdamW": ("step", "exp_avg", "exp_avg_sq"), "Muon": ("momentum_buffer",)}
COUNTED = 2**24  # steps that are counted exactly, in float32


def write_optimizer(into: Path, model: nn.Module, optimizer: Optimizer, ranks: Ranks = ALONE) -> None:
    """Write the optimizer's tensors into a folder. Where processes share the weights, every one of them must call."""
    if ranks.first:
        into.mkdir(parents=True)
    ranks.wait()
    tensors = {f"{name}.{key}": tensor for name, _, state in _held(model, optimizer) for key, tensor in state.items()}
    if not is_sharded(model):
        if ranks.first:
            write_tensors(into / OPTIMIZER, tensors)
        return
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
    from torch.distributed.checkpoint.state_dict_saver import save

    if tensors:  # before the first step there are none
        writer = HuggingFaceStorageWriter(str(into / SHARDS), save_distributed=True)
        save(cast("dict[str, Any]", tensors), storage_writer=writer)


def read_optimizer(folder: Path, model: nn.Module, optimizer: Optimizer, step: int, counted: int) -> None:
    """Give an optimizer the tensors it had after `step` steps, of which `counted` changed the weights."""
    shards = folder / SHARDS
    held = list(_held(model, optimizer))
    file, found = (shards, _read_shards(shards, held)) if shards.is_dir() else _read_file(folder / OPTIMIZER, held)
    weights = {name: p for name, p, _ in held}
    for name, tensor in found.items():
        _check_fits(file, name, tensor, weights, step, counted)
    names = {id(p): name for name, p in weights.items()}
    for part in parts_of(optimizer):
        own = [names[id(p)] for group in part.param_groups for p in group["params"]] if counted else []
        state = {n: {key: f"{name}.{key}" for key in KEPT[type(part).__name__]} for n, name in enumerate(own)}
        if missing := [name for kept in state.values() for name in kept.values() if name not in found]:
            raise BadInput(f"{file} does not fit the model: it lacks {missing[0]}")
        tensors = {n: {key: found[name] for key, name in kept.items()} for n, kept in state.items()}
        part.load_state_dict({**part.state_dict(), "state": tensors})


def place(whole: Tensor, like: Tensor) -> Tensor:
    """A tensor, or this process's share of it, where `like` is."""
    if not hasattr(like, "full_tensor"):
        return whole.to(like.device, copy=True)
    from torch.distributed.tensor import DTensor, distribute_tensor

    assert isinstance(like, DTensor)
    return distribute_tensor(whole.to(like.device), like.device_mesh, like.placements, src_data_rank=None)


@torch.no_grad()
def fill_lora(model: nn.Module, tensors: Mapping[str, Tensor], file: Path) -> None:
    """Copy matrices of low rank into a model, shared or not; BadInput where they are not those of its layers."""
    own = {f"{name}.{which}": getattr(part, which) for name, part in lora_layers(model).items() for which in (A, B)}
    if own.keys() != tensors.keys() or any(own[name].shape != tensor.shape for name, tensor in tensors.items()):
        raise BadInput(f"{file} does not fit the model: its layers of low rank are others")
    for name, tensor in tensors.items():
        own[name].copy_(place(tensor, own[name]))


Held = tuple[str, nn.Parameter, Mapping[str, Tensor]]


def _held(model: nn.Module, optimizer: Optimizer) -> Iterator[Held]:
    """Each weight of the optimizer: its name, itself, and what is kept of it."""
    names = {id(weight): plain_name(name) for name, weight in model.named_parameters()}
    for part in parts_of(optimizer):
        for group in part.param_groups:
            for p in group["params"]:
                yield names[id(p)], p, part.state.get(p, {})


def _read_file(file: Path, held: list[Held]) -> tuple[Path, dict[str, Tensor]]:
    """The tensors of a file, those of a weight that is shared shared like it."""
    weights = {name: p for name, p, _ in held}
    found = {}
    for name, tensor in read_tensors(file)[0].items():
        like = weights.get(name.rpartition(".")[0])
        fits = like is not None and like.shape == tensor.shape
        found[name] = place(tensor, like) if like is not None and fits else tensor.clone()
    return file, found


def _read_shards(folder: Path, held: list[Held]) -> dict[str, Tensor]:
    """The tensors of the files that processes wrote, however many these were."""
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
    from torch.distributed.checkpoint.state_dict_loader import load

    weights = {name: p for name, p, _ in held}
    try:
        reader = HuggingFaceStorageReader(str(folder))
        metadata: Mapping[str, Any] = reader.read_metadata().state_dict_metadata
        sizes = {name: kept.size for name, kept in metadata.items()}
        found: dict[str, Any] = {}
        for name, size in sizes.items():
            like = weights.get(name.rpartition(".")[0])
            fits = like is not None and like.shape == size
            found[name] = torch.zeros_like(like) if like is not None and fits else torch.zeros(size)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that no process group was started: one process reads alone
            load(found, storage_reader=reader)
    except Exception as error:  # each library below has errors of its own for a file that is cut off
        raise BadInput(f"{folder} is damaged, or a file of it is missing: {error}. Restore it from a copy") from error
    return found


def _check_fits(file: Path, name: str, tensor: Tensor, weights: Mapping[str, Tensor], step: int, counted: int) -> None:
    """Raise BadInput for a tensor that is none of the optimizer's, or not that of its weight at this step."""
    own, _, key = name.rpartition(".")
    weight = weights.get(own)
    if weight is None:
        raise BadInput(f"{file} does not fit the model: it holds {name}, which belongs to none of its weights")
    known = sorted({key for keys in KEPT.values() for key in keys})
    if key not in known:
        raise BadInput(f"{file} does not fit the model: it holds {name}; there is {', '.join(known)} of a weight")
    shape = () if key == "step" else weight.shape
    if tensor.shape != shape or not tensor.is_floating_point():
        raise BadInput(f"{file} does not fit the model: {name} has shape {tuple(tensor.shape)} and is {tensor.dtype}")
    if key == "step" and counted < COUNTED and tensor.item() != counted:
        raise BadInput(f"{file} is of step {tensor.item():g}, but the weights beside it are of step {step}")


__all__ = ["OPTIMIZER", "SHARDS", "fill_lora", "place", "read_optimizer", "write_optimizer"]
