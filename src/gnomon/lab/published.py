"""What others measured past the training length, as numbers to compare with.

Perplexities, by encoding and length. The logarithm of a perplexity is a loss per token, so its relative increase can be
laid beside that of bits per byte.
"""

from dataclasses import dataclass
from math import log


@dataclass(frozen=True)
class Curve:
    """One encoding of one paper: perplexity by evaluation length; the first length is the one trained at."""

    source: str
    perplexities: dict[int, float]

    @property
    def trained_at(self) -> int:
        """The training length."""
        return next(iter(self.perplexities))

    def increases(self) -> dict[float, float]:
        """Relative increase of the loss by multiple of the training length."""
        start = log(self.perplexities[self.trained_at])
        return {n / self.trained_at: log(p) / start - 1 for n, p in self.perplexities.items() if n > self.trained_at}

    def nearest(self, factor: float) -> tuple[float, float]:
        """The measurement nearest to a multiple of the training length (in octaves): multiple and increase."""
        return min(self.increases().items(), key=lambda item: abs(log(item[0] / factor)))


_PRESS = "Press et al. 2022, arXiv:2108.12409, table 2: WikiText-103, 247 million parameters"
_KAZEMNEJAD = "Kazemnejad et al. 2023, arXiv:2305.19466, appendix F: code, 1.3 billion parameters"

CURVES = {
    "sinusoidal": Curve(_PRESS, {512: 20.05, 1012: 43.54, 1512: 76.23, 2512: 132.41, 3512: 178.97, 15512: 406.01}),
    "rope": Curve(_PRESS, {512: 20.07, 1012: 21.37, 1512: 25.99, 2512: 31.58, 3512: 35.54, 15512: 79.25}),
    "t5": Curve(_PRESS, {512: 19.65, 1012: 18.79, 1512: 18.91, 2512: 20.41, 3512: 22.91}),
    "alibi": Curve(_PRESS, {512: 19.73, 1012: 18.73, 1512: 18.52, 2512: 18.41, 3512: 18.40, 15512: 18.31}),
    "none": Curve(
        _KAZEMNEJAD, {1024: 2.862, 1200: 2.843, 1400: 2.809, 1600: 3.459, 1800: 27.17, 2048: 110.0, 2560: 414.2}
    ),
}

__all__ = ["CURVES", "Curve"]
