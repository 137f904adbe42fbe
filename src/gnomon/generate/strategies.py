"""The simplest strategies: objects that choose the next token of each row from its logits.

A chooser keeps nothing between steps; whatever chance it needs comes from the generators of the rows, so a row's
tokens depend on its own logits and its own seed, never on its batch mates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch

from gnomon.errors import check_arguments
from gnomon.generate.logits import inverse_cdf, min_p, temperature, top_k, top_p
from gnomon.shapes import Float, Int


@runtime_checkable
class Chooser(Protocol):
    """Anything that can choose. It is a strategy with no more than this."""

    def choose(self, logits: Float, rngs: Sequence[torch.Generator]) -> Int:
        """Logits (B, V), float32 or float64 and none of them NaN, and a generator per row -> ids (B,)."""


@runtime_checkable
class Distribution(Chooser, Protocol):
    """A chooser that can say from which distribution it draws, as Greedy() and Sample(...) can."""

    def process(self, logits: Float) -> Float:
        """Logits (B, V) -> those of the distribution that is drawn from."""


@dataclass(frozen=True)
class Greedy:
    """The most probable token, the lower id where two are equal."""

    def process(self, logits: Float) -> Float:
        """The logits (B, V) with all but the best at -inf."""
        return temperature(logits, 0)

    def choose(self, logits: Float, rngs: Sequence[torch.Generator]) -> Int:
        """Logits (B, V) -> ids (B,); no chance is involved."""
        return logits.argmax(-1)


GREEDY = Greedy()


@check_arguments
@dataclass(frozen=True)
class Sample:
    """A draw from the model's distribution, reshaped by temperature, then top_k, top_p and min_p (None: not at all).

    Each draw takes one uniform number from the row's own generator, on the CPU, and inverts the cumulative
    distribution with it, so a seed gives the same tokens in any batch and on any device.

    Raises BadValue at once for a value that cannot be right; `gnomon.generate.logits` explains each.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None

    def __post_init__(self) -> None:
        self.process(torch.zeros(1, 2))

    def process(self, logits: Float) -> Float:
        """The logits (B, V) of the distribution that is drawn from."""
        logits = temperature(logits, self.temperature)
        logits = logits if self.top_k is None else top_k(logits, self.top_k)
        logits = logits if self.top_p is None else top_p(logits, self.top_p)
        return logits if self.min_p is None else min_p(logits, self.min_p)

    def choose(self, logits: Float, rngs: Sequence[torch.Generator]) -> Int:
        """Logits (B, V) -> ids (B,), one draw each."""
        u = torch.stack([torch.rand((), generator=rng, dtype=torch.float64) for rng in rngs])
        return inverse_cdf(self.process(logits), u)


__all__ = ["GREEDY", "Chooser", "Distribution", "Greedy", "Sample"]
