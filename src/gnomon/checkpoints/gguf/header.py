"""The header of a GGUF file: its metadata and the directory of its tensors, read without trusting a number in it.

    "GGUF", version (u32), tensors (u64), keys (u64) | key, type, value ... | name, shape, type, offset ... | the data

All is little-endian; a string or an array is preceded by its length (u64); a shape is written with its fastest axis
first (ggml's specification of the format, versions 2 and 3). Every length is compared with the bytes that are left
before anything is read or reserved for it.
"""

import mmap
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from gnomon.errors import BadInput

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
VERSIONS = (2, 3)
CHUNK = 1 << 18  # numbers decoded at a time

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class TensorInfo:
    """A tensor in the file. shape: as torch has it, the fastest axis last; kind: ggml's number for how it is stored."""

    shape: tuple[int, ...]
    kind: int
    start: int
    n_bytes: int


class GGUF:
    """An open file: `metadata` by key, `tensors` by name. Memory-mapped; tensors are decoded when asked for."""

    def __init__(self, path: str | Path) -> None:
        """Read the header. Raises BadInput for what is cut off, absurd, or no GGUF file."""
        self.path = Path(path)
        try:
            with open(self.path, "rb") as file:
                if os.fstat(file.fileno()).st_size == 0:
                    raise BadInput(f"{self.path} is empty: download it again")
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise BadInput(f"cannot read {self.path}: {error.strerror or error}") from error
        reader = _Reader(self._data, self.path)
        self.metadata = dict(reader.metadata())
        self.tensors = reader.tensors(self.metadata.get("general.alignment", 32))

    def decoded(self, name: str) -> Iterator[tuple[int, Array]]:
        """The tensor in float32, some of its first axis at a time, each time with the number of the first of these."""
        from gguf import GGMLQuantizationType
        from gguf.quants import dequantize

        stored = self.tensors[name]
        width = stored.shape[-1]
        rows = prod(stored.shape[:-1])  # a row is what lies along the last axis; a vector is one
        row_bytes, step = stored.n_bytes // rows, max(1, CHUNK // width)
        data = np.frombuffer(self._data, np.uint8, stored.n_bytes, stored.start).reshape(rows, row_bytes)
        kind = GGMLQuantizationType(stored.kind)
        for first in range(0, rows, step):
            try:
                chunk = dequantize(data[first : first + step], kind)
            except NotImplementedError as error:
                raise BadInput(f"{self.path}: {name} is stored as {kind.name}, which is not supported") from error
            yield first, np.array(chunk[0] if len(stored.shape) == 1 else chunk, np.float32)


class _Reader:
    """A place in the file, which moves on with everything read."""

    def __init__(self, data: mmap.mmap, path: Path) -> None:
        self.data, self.path, self.at = data, path, 0
        if bytes(data[:4]) != b"GGUF":
            raise BadInput(f"{path} is no GGUF file: it does not begin with those letters")
        self.at = 4
        version = self.number("I")
        if version not in VERSIONS:
            big = ", written for big-endian machines" if version & 0xFFFF == 0 else ""
            raise BadInput(f"{path} has version {version} of the format{big}; versions 2 and 3 are read")
        self.n_tensors, self.n_keys = self.count(24), self.count(13)  # bytes that the shortest of each takes

    def need(self, n: int) -> None:
        """Raise BadInput unless n more bytes are there."""
        if n > len(self.data) - self.at:
            raise BadInput(
                f"{self.path} is cut off or damaged: {n} bytes are announced at byte {self.at}, but it ends at "
                f"{len(self.data)}. Download it again"
            )

    def number(self, code: str) -> Any:
        """One number of a kind that struct knows by this letter."""
        size = struct.calcsize("<" + code)
        self.need(size)
        (value,) = struct.unpack_from("<" + code, self.data, self.at)
        self.at += size
        return value

    def count(self, each: int) -> int:
        """How many things follow that take at least `each` bytes; no more than have room in the file."""
        n = int(self.number("Q"))
        self.need(n * each)
        return n

    def string(self) -> str:
        n = self.count(1)
        text = self.data[self.at : self.at + n]
        self.at += n
        try:
            return text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise BadInput(f"{self.path}: the text at byte {self.at - n} is not UTF-8") from error

    def metadata(self) -> Iterator[tuple[str, Any]]:
        """The keys and their values."""
        seen = set()
        for _ in range(self.n_keys):
            key = self.string()
            if key in seen:
                raise BadInput(f"{self.path} holds the key {key!r} twice")
            seen.add(key)
            yield key, self.value(self.number("I"))

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.string()
        if kind in _SCALARS:
            return self.number(_SCALARS[kind])
        if kind != _ARRAY:
            raise BadInput(f"{self.path}: a value of the unknown type {kind} at byte {self.at}")
        inner = self.number("I")
        if inner == _STRING:
            return [self.string() for _ in range(self.count(8))]
        if inner not in _SCALARS:
            raise BadInput(f"{self.path}: an array of the unknown type {inner} at byte {self.at}")
        dtype = np.dtype("<" + _SCALARS[inner] if inner != 7 else "?")
        n = self.count(dtype.itemsize)
        values = np.frombuffer(self.data, dtype, n, self.at)
        self.at += n * dtype.itemsize
        return values.tolist()

    def tensors(self, alignment: Any) -> dict[str, TensorInfo]:
        """The directory; every tensor in it lies within the file."""
        if type(alignment) is not int or not 1 <= alignment <= 1 << 20 or alignment & (alignment - 1):
            raise BadInput(f"{self.path}: general.alignment must be a power of two, got {alignment!r}")
        entries = [self.entry() for _ in range(self.n_tensors)]
        start = -(-self.at // alignment) * alignment
        found: dict[str, TensorInfo] = {}
        for name, shape, kind, n_bytes, offset in entries:
            if name in found:
                raise BadInput(f"{self.path} holds the tensor {name!r} twice")
            if start + offset + n_bytes > len(self.data):
                raise BadInput(
                    f"{self.path} is cut off or damaged: {name} of shape {shape} ends at byte "
                    f"{start + offset + n_bytes}, but the file at {len(self.data)}. Download it again"
                )
            found[name] = TensorInfo(shape, kind, start + offset, n_bytes)
        return found

    def entry(self) -> tuple[str, tuple[int, ...], int, int, int]:
        """One line of the directory: name, shape, kind, bytes, offset."""
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

        name, axes = self.string(), self.number("I")
        if not 1 <= axes <= 4:
            raise BadInput(f"{self.path}: {name} has {axes} axes; ggml knows 1 to 4")
        shape = tuple(reversed([int(self.number("Q")) for _ in range(axes)]))
        kind, offset = self.number("I"), self.number("Q")
        try:
            block, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
        except (ValueError, KeyError) as error:
            raise BadInput(f"{self.path}: {name} is stored in the unknown way {kind}: a newer format?") from error
        if min(shape) < 1 or shape[-1] % block:
            raise BadInput(f"{self.path}: {name} has the impossible shape {shape}; rows come in blocks of {block}")
        return name, shape, kind, prod(shape) // block * block_bytes, offset


__all__ = ["GGUF", "Array", "TensorInfo"]
