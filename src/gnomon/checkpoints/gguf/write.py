"""Write a model as a GGUF file that llama.cpp loads."""

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from gnomon.checkpoints.gguf.family import Family, parts, row_order, stored_shape
from gnomon.checkpoints.gguf.header import Array
from gnomon.checkpoints.gguf.keys import START
from gnomon.checkpoints.gguf.settings import describe, tensor_shapes_of, weight_shapes
from gnomon.checkpoints.gguf.tokenizer import describe_tokenizer
from gnomon.checkpoints.native import unwrap
from gnomon.data import atomic
from gnomon.errors import BadValue, unknown
from gnomon.models import ModelConfig
from gnomon.models.snapshot import snapshot

Precision = Literal["float32", "float16", "q8_0"]
FILE_TYPES = {"float32": 0, "float16": 1, "q8_0": 7}  # llama.cpp's numbers for what most tensors are
EXACT = (  # tensors that llama.cpp wants in float32
    "token_embd_norm",
    "position_embd",
    "token_types",
    "enc.blk.0.attn_rel_b",
    "dec.blk.0.attn_rel_b",
    "rope_f",
)


def save(model: nn.Module, path: str | Path, dtype: Precision = "float32") -> Path:
    """Write a model, which may be compiled or wrapped, with its tokenizer in llama.cpp's words; returns the path.

    dtype   of the matrices: "float32" (bit-equal when read back), "float16", or "q8_0" (8 bits and a scale for each 32
            numbers). Vectors are float32 always. A tied head is written once, as the table.

    Raises BadValue for a model that no family of llama.cpp computes, or a tokenizer that it does not have; the message
    lists what is in the way. BadInput where the file cannot be written; it appears whole or not at all.
    """
    if dtype not in get_args(Precision):
        raise unknown("dtype of a GGUF file", dtype, get_args(Precision))
    model = unwrap(model)
    if model.prompts:
        raise BadValue(
            f"a GGUF file does not hold the prompts of a model, {', '.join(model.prompts)}: put them before your texts "
            "yourself, and set model.prompts = {} to write the model without them"
        )
    found = snapshot(model)
    config, weights = found.config, {name: weight.detach() for name, weight in found.weights.items()}
    family, keys, factors = describe(config)
    starts = config.architecture == "encoder-decoder" and model.start is not None
    about: dict[str, Any] = {
        "general.architecture": family.arch,
        "general.file_type": np.uint32(FILE_TYPES[dtype]),
        "general.quantization_version": np.uint32(2),
        **{f"{family.arch}.{key}": v for key, v in keys.items()},
        **({f"{family.arch}.{START}": model.start} if starts else {}),
        **({"tokenizer.ggml.token_type_count": config.n_types} if config.n_types else {}),
        **({"tokenizer.ggml.model": "no_vocab"} if model.tokenizer is None else describe_tokenizer(model.tokenizer)),
    }
    tensors = {name: np.array(values, np.float32) for name, values in factors.items()}
    _write(
        Path(path),
        about,
        tensors,
        JoinedTensors(family, config, weights),
        tensor_shapes_of(family, weight_shapes(config)),
        dtype,
    )
    return Path(path)


class JoinedTensors:
    """The model's weights, put together as the family's tensors when they are asked for."""

    def __init__(self, family: Family, config: ModelConfig, weights: Mapping[str, Tensor]) -> None:
        shapes = {name: tuple(weight.shape) for name, weight in weights.items()}
        self.family, self.config, self.weights, self.where = family, config, weights, parts(family, shapes)

    def tensor(self, name: str) -> Array:
        """One tensor of the file, in float32."""
        held = sorted((part.first, ours) for ours, part in self.where.items() if part.tensor == name)
        return np.concatenate([self._as_theirs(ours) for _, ours in held])

    def _as_theirs(self, ours: str) -> Array:
        weight = self.weights[ours].to("cpu", torch.float32)
        order = row_order(self.family, self.config, ours, len(weight))
        weight = weight if order is None else weight[order.argsort()]
        weight = weight + 1 if self.family.adds_one(ours) else weight
        return weight.reshape(stored_shape(ours, tuple(weight.shape))).numpy()


def _write(
    path: Path,
    about: Mapping[str, Any],
    extra: Mapping[str, Array],
    pieces: JoinedTensors,
    shapes: Mapping[str, tuple[int, ...]],
    dtype: Precision,
) -> None:
    """Header first, then one tensor after the other: one of them at a time is in memory."""
    from gguf import GGUFWriter
    from gguf.quants import quant_shape_to_byte_shape, quantize

    kinds = {name: _kind(name, shape, dtype) for name, shape in shapes.items()}
    with atomic(path) as draft:
        writer = GGUFWriter(draft.name, str(about["general.architecture"]))
        try:
            for key, value in about.items():
                if key != "general.architecture":  # it wrote that itself
                    _add(writer, key, value)
            for name, values in extra.items():
                writer.add_tensor_info(name, values.shape, values.dtype, values.nbytes)
            for name, shape in shapes.items():
                in_bytes = quant_shape_to_byte_shape(shape, kinds[name])
                writer.add_tensor_info(name, in_bytes, np.dtype(np.uint8), prod(in_bytes), raw_dtype=kinds[name])
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_ti_data_to_file()
            for values in extra.values():
                writer.write_tensor_data(values)
            for name in shapes:
                with np.errstate(over="ignore"):  # said below
                    stored = quantize(pieces.tensor(name).reshape(shapes[name]), kinds[name])
                if stored.dtype != np.uint8 and not np.isfinite(stored).all():
                    raise BadValue(f"{name} has numbers that {stored.dtype} cannot hold: write float32")
                writer.write_tensor_data(stored)
        finally:
            writer.close()


def _kind(name: str, shape: tuple[int, ...], dtype: Precision) -> Any:
    from gguf import GGMLQuantizationType

    if dtype == "float32" or len(shape) == 1 or name.startswith(EXACT):
        return GGMLQuantizationType.F32
    if dtype == "q8_0" and shape[-1] % 32 == 0:
        return GGMLQuantizationType.Q8_0
    return GGMLQuantizationType.F16


def _add(writer: Any, key: str, value: Any) -> None:
    """One key, in the type that llama.cpp expects: whole numbers are uint32, others float32."""
    from gguf import GGUFValueType as Type

    if isinstance(value, bool):
        writer.add_key_value(key, value, Type.BOOL)
    elif isinstance(value, int | np.integer):
        writer.add_key_value(key, int(value), Type.UINT32)
    elif isinstance(value, float):
        writer.add_key_value(key, value, Type.FLOAT32)
    elif isinstance(value, str):
        writer.add_key_value(key, value, Type.STRING)
    elif isinstance(value, list | bytes):
        writer.add_array(key, value)
    else:
        raise BadValue(f"{key} cannot be written: {value!r}")


__all__ = ["Precision", "save"]
