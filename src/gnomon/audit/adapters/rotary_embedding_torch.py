"""A RotaryEmbedding of lucidrains' rotary-embedding-torch, as a bare rotation."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from gnomon.audit.adapters.positions import Cached, Rotation, Turn, heads_second
from gnomon.audit.restore import cast_while_asking
from gnomon.audit.target import NotApplicable
from gnomon.shapes import Float, Int

SPAN = 2048  #: tokens that an xPos is told of: its factors are counted from the middle of what it is told of


class RotaryEmbeddingTorch(Rotation):
    """Queries and keys through `rotate_queries_or_keys(offset=...)`, of an xPos through `rotate_queries_and_keys`.

    promised  the frequencies it was built for; the module itself no longer knows its `theta`
    """

    def __init__(self, model: Any, *, promised: Sequence[float] | None = None, seed: int = 0) -> None:
        queries, keys = _rotations(model)
        super().__init__(
            f"{type(model).__name__} ({model.freqs_for}{', xpos' if model.use_xpos else ''})",
            queries,
            key=keys,
            layout="BHTC",
            cached=_cached_rotation(model),
            width=2 * len(model.freqs),
            promised=None if model.use_xpos else promised,
            cast=lambda dtype: cast_while_asking(model, dtype, queries),
        )
        self.model, self.seed = model, seed


def _rotations(model: Any) -> tuple[Turn, Turn]:
    """Of queries and of keys, x (B, H, T, C)."""
    queries, keys = _native_rotations(model)
    if not _heads_last(model):
        return queries, keys
    turn = heads_second(queries)
    return turn, turn if keys is queries else heads_second(keys)


def _native_rotations(model: Any) -> tuple[Turn, Turn]:
    """The same in the module's own order of axes."""
    axis = 1 if _heads_last(model) else 2
    if model.use_xpos:
        return _rotate_in_text(lambda x: model.rotate_queries_and_keys(x, x)[0], axis), _rotate_in_text(
            lambda x: model.rotate_queries_and_keys(x, x)[1], axis
        )

    def turn(x: Float, positions: Int) -> Float:
        start = int(positions[0])
        if not torch.equal(positions.cpu(), torch.arange(start, start + len(positions))):
            return _rotate_in_text(model.rotate_queries_or_keys, axis)(x, positions)
        turned: Float = model.rotate_queries_or_keys(x, offset=start)
        return turned

    return turn, turn


def _heads_last(model: Any) -> bool:
    """Whether the module was made for x (B, T, H, C)."""
    return bool(model.default_seq_dim == -3)


def _cached_rotation(model: Any) -> Cached:
    """Queries at the end of keys that were kept unturned."""

    def turn(q: Float, k: Float) -> tuple[Float, Float]:
        if not _heads_last(model):
            return model.rotate_queries_with_cached_keys(q, k)
        turned = model.rotate_queries_with_cached_keys(q.transpose(1, 2), k.transpose(1, 2))
        return turned[0].transpose(1, 2), turned[1].transpose(1, 2)

    return turn


def _rotate_in_text(rotate: Callable[[Float], Float], axis: int) -> Turn:
    """Tokens at chosen positions of a text of SPAN along an axis, the rest of which is zeros."""

    def turn(x: Float, positions: Int) -> Float:
        if int(positions.max()) >= SPAN:
            raise NotApplicable(f"asked about position {int(positions.max())} of {SPAN}")
        shape = [SPAN if i == axis else size for i, size in enumerate(x.shape)]
        text = x.new_zeros(shape).index_copy(axis, positions, x)
        return rotate(text).index_select(axis, positions)

    return turn


__all__ = ["SPAN", "RotaryEmbeddingTorch"]
