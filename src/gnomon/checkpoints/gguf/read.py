"""Load a model from a GGUF file.

The file is mapped into memory and decoded some rows at a time, straight into the model's own weights: there is never
a second whole copy, in any dtype.
"""

from collections.abc import Mapping
from math import prod
from pathlib import Path

import torch

from gnomon.checkpoints.gguf.family import Family, Part, parts, row_order, stored_shape, tensor_shapes
from gnomon.checkpoints.gguf.header import GGUF, Array
from gnomon.checkpoints.gguf.keys import START, Keys, shortest
from gnomon.checkpoints.gguf.registry import FAMILIES
from gnomon.checkpoints.gguf.rope import FACTORS
from gnomon.checkpoints.gguf.settings import read_settings
from gnomon.checkpoints.gguf.tokenizer import read_tokenizer
from gnomon.checkpoints.weights import assign_weights, mismatch_error
from gnomon.errors import BadInput, BadValue, unknown
from gnomon.models import Model, ModelConfig
from gnomon.models.meta import build_on_meta


def load(path: str | Path, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32) -> Model:
    """The model in a GGUF file, ready to use (in eval mode), with its tokenizer as `.tokenizer`.

    Every quantisation that the gguf package decodes is read; the weights become `dtype`. Raises BadInput for a family
    that is not known, a key or a tensor that would be ignored, one that is missing, and for a damaged file.
    """
    file = GGUF(path)
    family = _family(file)
    factors = {name: [shortest(x) for x in _vector(file, name).tolist()] for name in FACTORS if name in file.tensors}
    shapes = {name: stored.shape for name, stored in file.tensors.items() if name not in FACTORS}
    keys = Keys(file.metadata, family.arch, file.path)
    config = read_settings(family, keys, shapes, factors)
    start = keys.get(START, int, -1) if config.architecture == "encoder-decoder" else -1
    keys.finish()
    if start >= config.vocab_size:
        raise BadInput(f"{path}: its decoder starts from token {start}, beyond a vocabulary of {config.vocab_size}")
    try:
        model = build_on_meta(config)
    except BadValue as error:
        raise BadInput(f"{path} describes a model that cannot be: {error}") from error
    own = {name: tuple(weight.shape) for name, weight in model.state_dict().items()}
    where = parts(family, own)
    _compare(file.path, tensor_shapes(where, own), shapes, sorted(own.keys() - where.keys()))
    model.tokenizer = read_tokenizer(file)
    if model.tokenizer is not None and model.tokenizer.vocab_size > config.vocab_size:
        raise BadInput(f"{path} has {model.tokenizer.vocab_size} tokens, but a table of {config.vocab_size} rows")
    file.metadata.clear()  # a vocabulary as Python's strings: what is not needed any more makes room for the weights
    empty = {name: torch.empty(shape, dtype=dtype, device=device) for name, shape in own.items()}
    assign_weights(model, empty, torch.device(device))
    _fill(model, file, family, config, where)
    model.start = None if start < 0 else start
    return model.eval()


def _family(file: GGUF) -> Family:
    arch = file.metadata.get("general.architecture")
    if file.metadata.get("split.count", 1) != 1:
        raise BadInput(f"{file.path} is one of several files: join them first (llama-gguf-split --merge)")
    if not isinstance(arch, str) or arch not in FAMILIES:
        raise BadInput(f"{file.path}: {unknown('architecture', str(arch), FAMILIES)}")
    return FAMILIES[arch]


def _vector(file: GGUF, name: str) -> Array:
    if prod(file.tensors[name].shape) > 1 << 16:
        raise BadInput(f"{file.path}: {name} has {file.tensors[name].shape}, far more factors than a head has pairs")
    return next(values for _, values in file.decoded(name)).reshape(-1)


def _compare(
    path: Path, needed: Mapping[str, tuple[int, ...]], found: Mapping[str, tuple[int, ...]], nameless: list[str]
) -> None:
    """BadInput unless the tensors are those that the model needs, in their shapes."""
    wrong = [f"{n} is {found[n]}, expected {needed[n]}" for n in needed.keys() & found.keys() if found[n] != needed[n]]
    missing, unused = sorted(needed.keys() - found.keys()) + nameless, sorted(found.keys() - needed.keys())
    if wrong or missing or unused:
        raise mismatch_error(path, "the model that its keys describe", missing=missing, unused=unused, different=wrong)


@torch.no_grad()
def _fill(model: Model, file: GGUF, family: Family, config: ModelConfig, where: Mapping[str, Part]) -> None:
    """Decode every tensor into the weights that it holds."""
    weights = model.state_dict()
    held: dict[str, list[str]] = {}
    for ours, part in where.items():
        held.setdefault(part.tensor, []).append(ours)
    for tensor, names in held.items():
        orders = {ours: row_order(family, config, ours, where[ours].rows) for ours in names}
        for first, values in file.decoded(tensor):
            chunk = torch.from_numpy(values)
            for ours in names:
                part = where[ours]
                low, high = max(first, part.first), min(first + len(chunk), part.first + part.rows)
                if low >= high:
                    continue
                rows = chunk[low - first : high - first]
                rows = rows - 1 if family.adds_one(ours) else rows
                weight = weights[ours].view(stored_shape(ours, tuple(weights[ours].shape)))
                _put(weight, rows, low - part.first, orders[ours])


def _put(weight: torch.Tensor, rows: torch.Tensor, first: int, order: torch.Tensor | None) -> None:
    """Copy rows of the file, from number `first` on, to where they stand in our weight."""
    rows = rows.to(weight.device, weight.dtype)
    if order is None:
        weight[first : first + len(rows)] = rows
    else:
        weight[order.argsort()[first : first + len(rows)].to(weight.device)] = rows


__all__ = ["load"]
