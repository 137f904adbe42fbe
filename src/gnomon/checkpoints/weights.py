"""Weights in safetensors files: known by name and shape before one byte of them is read, then mapped into memory.

A model is made on torch's meta device, which has shapes and no memory, compared with what the files say they hold, and
only then given its tensors. So a config that asks for more than the files have is an error, never an allocation.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import torch
from torch import Tensor, nn

from gnomon.errors import BadInput
from gnomon.models import ModelConfig

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
SHOWN = 8  # names listed in an error before "and N more"
MAPS = sys.platform != "win32"  # there a file that is mapped cannot be replaced, so nothing could be saved over it
ALIGNED, SMALL = 64, 2**15  # bytes
FEW = 200  # layers that are made in no time, so that what does not fit can be listed by name
FLOATS = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


@dataclass(frozen=True)
class LazyTensor:
    """One tensor of a file, not read yet."""

    file: Path
    shape: tuple[int, ...]
    dtype: str  # in the words of safetensors: F32, BF16, I64 ...


class Weights:
    """The tensors of one or several safetensors files, by name."""

    def __init__(self, files: list[Path]) -> None:
        """Read the headers. BadInput for a file that is cut off, no safetensors file, or holds a name of another."""
        self.found: dict[str, LazyTensor] = {}
        self._open: dict[Path, Any] = {}
        for file in files:
            for name, stored in _header(file).items():
                if name in self.found:
                    raise BadInput(f"{name} is in {self.found[name].file} and in {file}: which is right is not known")
                self.found[name] = stored

    def __contains__(self, name: str) -> bool:
        return name in self.found

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor."""
        return self.found[name].shape

    def dtype(self, name: str) -> torch.dtype:
        """The dtype of a tensor; BadInput for one that is no floating type we compute in."""
        stored = self.found[name]
        if stored.dtype not in FLOATS:
            raise BadInput(
                f"{stored.file}: {name} is {stored.dtype}, which Gnomon does not compute in "
                f"(it reads {', '.join(FLOATS)}): take the checkpoint before quantisation, or a GGUF file"
            )
        return FLOATS[stored.dtype]

    def tensor(self, name: str, dtype: torch.dtype | None = None) -> Tensor:
        """A tensor: mapped from the file, or copied from it where another dtype is wanted, or it is small and lies
        where products of it round otherwise."""
        file, stored = self.found[name].file, self.dtype(name)
        try:
            if dtype not in (None, stored) or not MAPS:
                with safetensors.safe_open(file, framework="pt") as opened:  # unmapped again right after the copy
                    return opened.get_tensor(name).to(dtype or stored, copy=True)
            if file not in self._open:
                self._open[file] = safetensors.safe_open(file, framework="pt")
            return _aligned(self._open[file].get_tensor(name))
        except (safetensors.SafetensorError, OSError) as error:
            raise BadInput(f"{file} cannot be read: {error}. Restore it from a copy") from error

    def metadata(self) -> dict[str, str]:
        """What the headers say besides the names."""
        found: dict[str, str] = {}
        for file in {stored.file for stored in self.found.values()}:
            with safetensors.safe_open(file, framework="pt") as opened:
                found |= opened.metadata() or {}
        return found


def _aligned(x: Tensor) -> Tensor:
    """A small tensor as torch would allocate it. In a file tensors begin at any eighth byte, and some products of a
    vector with a matrix add in another order there than at a multiple of 64."""
    return x.clone() if x.data_ptr() % ALIGNED and x.numel() * x.element_size() <= SMALL else x


def _header(file: Path) -> dict[str, LazyTensor]:
    try:
        with safetensors.safe_open(file, framework="pt") as opened:
            slices = {name: opened.get_slice(name) for name in opened.keys()}  # noqa: SIM118
            return {name: LazyTensor(file, tuple(s.get_shape()), s.get_dtype()) for name, s in slices.items()}
    except FileNotFoundError as error:
        raise BadInput(f"{file.parent} is not whole: {file.name} is missing") from error
    except (safetensors.SafetensorError, OSError) as error:
        raise BadInput(f"{file} is cut off or no safetensors file: {error}. Restore it from a copy") from error


def open_weights(folder: Path) -> Weights:
    """The weights of a folder: model.safetensors, or the shards that its index lists, which must lie beside it.

    BadInput where both are there: they may be two models.
    """
    single, index = folder / SINGLE, folder / INDEX
    if not index.is_file():
        return Weights([single])
    placed = read_index(index)
    shards = sorted(set(placed.values()))
    if SINGLE not in shards and single.is_file():
        others = [shard for shard in shards if (folder / shard).is_file()]
        if not others:
            return Weights([single])
        raise BadInput(
            f"{folder} holds its weights twice, in {SINGLE} and in {first_few(others)}, which {INDEX} names. Which are "
            "right is not known: take the others away"
        )
    weights = Weights([folder / shard for shard in shards])
    lost = sorted(
        name for name, shard in placed.items() if name not in weights or weights.found[name].file.name != shard
    )
    if lost:
        raise BadInput(f"{index} promises weights that its shards do not hold: {first_few(lost)}")
    return weights


def read_index(index: Path) -> dict[str, str]:
    """Which shard each weight is in. BadInput for what is no index, and for a shard outside its folder."""
    try:
        placed = {str(name): str(shard) for name, shard in json.loads(index.read_bytes())["weight_map"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadInput(f"{index} is cut off or no index of shards: {type(error).__name__}: {error}") from error
    for shard in placed.values():
        if "/" in shard or "\\" in shard or shard in ("", ".", ".."):
            raise BadInput(f"{index} names the shard {shard!r}: shards lie in the same folder, under a plain name")
    return placed


def check_layer_count(config: ModelConfig, found: int, source: Path) -> None:
    """Raise BadInput where a config asks for many more layers than there are weights: making them takes time."""
    layers = config.n_layers + (config.depth if config.architecture == "encoder-decoder" else 0)
    if layers > max(found, FEW):
        raise BadInput(f"{source} holds {found} weights, too few for the {layers} layers that its config asks for")


def assign_weights(model: nn.Module, tensors: Mapping[str, Tensor], device: torch.device) -> None:
    """Make these tensors the model's weights; the shapes are known to fit."""
    model.load_state_dict({name: tensor.to(device) for name, tensor in tensors.items()}, strict=True, assign=True)


def first_few(items: list[str]) -> str:
    """The first few of some names."""
    more = len(items) - SHOWN
    return ", ".join(items[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def mismatch_error(source: Path, needs: str, **found: list[str]) -> BadInput:
    """The error for weights that do not fit: each kind of fault with its names."""
    listing = "; ".join(f"{kind}: {first_few(sorted(items))}" for kind, items in found.items() if items)
    return BadInput(f"{source} does not fit {needs}: {listing}")


__all__ = [
    "INDEX",
    "SINGLE",
    "LazyTensor",
    "Weights",
    "assign_weights",
    "check_layer_count",
    "first_few",
    "mismatch_error",
    "open_weights",
    "read_index",
]
