"""A RotaryEmbedding of lucidrains' rotary-embedding-torch, as a bare rotation."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from gnomon.audit.outside.adapters.positions import Rotation, Turn
from gnomon.audit.outside.lending import in_dtype
from gnomon.audit.subject import NotApplicable
from gnomon.shapes import Float, Int

SPAN = 2048  #: tokens that an xPos is told of: its factors are counted from the middle of what it is told of


class RotaryEmbeddingTorch(Rotation):
    """Queries and keys through `rotate_queries_or_keys(offset=...)`, of an xPos through `rotate_queries_and_keys`.

    promised  the frequencies it was built for; the module itself no longer knows its `theta`
    """

    def __init__(self, model: Any, *, promised: Sequence[float] | None = None, seed: int = 0) -> None:
        queries, keys = _turns(model)
        super().__init__(
            f"{type(model).__name__} ({model.freqs_for}{', xpos' if model.use_xpos else ''})",
            queries,
            key=keys,
            width=2 * len(model.freqs),
            promised=None if model.use_xpos else promised,
            cast=lambda dtype: in_dtype(model, dtype, queries),
        )
        self.model, self.seed = model, seed


def _turns(model: Any) -> tuple[Turn, Turn]:
    """Of queries and of keys."""
    if model.use_xpos:
        return _within(lambda x: model.rotate_queries_and_keys(x, x)[0]), _within(
            lambda x: model.rotate_queries_and_keys(x, x)[1]
        )

    def turn(x: Float, positions: Int) -> Float:
        start = int(positions[0])
        if not torch.equal(positions.cpu(), torch.arange(start, start + len(positions))):
            return _within(model.rotate_queries_or_keys)(x, positions)
        turned: Float = model.rotate_queries_or_keys(x, offset=start)
        return turned

    return turn, turn


def _within(rotate: Callable[[Float], Float]) -> Turn:
    """Tokens at chosen positions of a text of SPAN, the rest of which is zeros."""

    def turn(x: Float, positions: Int) -> Float:
        if int(positions.max()) >= SPAN:
            raise NotApplicable(f"asked about position {int(positions.max())} of {SPAN}")
        text = x.new_zeros(*x.shape[:2], SPAN, x.shape[-1])
        text[:, :, positions] = x
        return rotate(text)[:, :, positions]

    return turn


__all__ = ["SPAN", "RotaryEmbeddingTorch"]
