"""ALiBi's table 2 (Press et al. 2022, arXiv:2108.12409): perplexity on WikiText-103 in windows without overlap.

There: 247 million parameters, trained on 512 tokens. Here: 0.46 million, trained on 64, on this machine's text; windows
at the same multiples of the training length.
"""

from functools import partial

from gnomon.lab.cell import Cell, Result
from gnomon.lab.reproductions.frame import Condition, Numbers, Reproduction
from gnomon.lab.settings import Recipe
from gnomon.lab.text_cell import text_cell

LENGTH, FACTORS = 64, (1, 2, 3, 5, 7)
PUBLISHED: dict[str, Numbers] = {  # at 512, 1012, 1512, 2512 and 3512 tokens
    "alibi": (19.73, 18.73, 18.52, 18.41, 18.40),
    "t5": (19.65, 18.79, 18.91, 20.41, 22.91),
    "rope": (20.07, 21.37, 25.99, 31.58, 35.54),
    "sinusoidal": (20.05, 43.54, 76.23, 132.41, 178.97),
}
MARGIN = 0.5  # of the perplexity of a unigram, which a model that has learned anything stays below


def cell(position: str, seed: int) -> Cell:
    """One language model."""
    return text_cell(position, seed=seed, length=LENGTH, factors=FACTORS, train=Recipe(steps=600, warmup=50))


def read(result: Result) -> Numbers:
    """Perplexity by length."""
    return tuple(m["perplexity"] for m in result["measured"])


def learned(result: Result) -> bool:
    """Whether it makes use of its context."""
    found = result["measured"][0]["perplexity"]
    return found is not None and found < MARGIN * result["unigram"]


REPRODUCTION = Reproduction(
    name="alibi-table-2",
    source="Press et al. 2022, arXiv:2108.12409, table 2",
    columns=("512", "1012", "1512", "2512", "3512"),
    ours=tuple(str(LENGTH * factor) for factor in FACTORS),
    conditions=tuple(
        Condition(name, numbers, partial(cell, name), read, learned) for name, numbers in PUBLISHED.items()
    ),
    ranked=(4,),
    higher=False,
)

__all__ = ["REPRODUCTION"]
