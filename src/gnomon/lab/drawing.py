"""The model of a cell before training: one way for every kind of cell, so that a seed means the same in each."""

from collections.abc import Sequence
from typing import Any

import torch

from gnomon.models import DecoderOnly
from gnomon.positions import Spec


def draw_model(vocab_size: int, specs: Sequence[Spec], seed: int, **settings: Any) -> DecoderOnly:
    """A decoder under these encodings, which take turns over its layers. All of one seed begin with the same weights
    but for position: an encoding draws its own from a stream of its own. settings: sizes, and what else a model has."""
    torch.manual_seed(seed)
    return DecoderOnly(vocab_size, position=specs[0] if len(specs) == 1 else list(specs), **settings)


__all__ = ["draw_model"]
