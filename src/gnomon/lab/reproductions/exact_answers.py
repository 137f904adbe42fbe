"""What reproductions of tasks with exact answers share: a cell, and its answers by stretch."""

from typing import Any, Literal

from gnomon.lab.cell import Cell, Result
from gnomon.lab.exact.cell import ExactCell
from gnomon.lab.exact.report import LEARNED, learned
from gnomon.lab.exact.settings import ExactRecipe, ExactSize
from gnomon.lab.reproductions.frame import Numbers

LENGTH = 6  # of the longest question trained on
FACTORS = (1.0, 2.0, 3.0)
SPANS = ("4–6", "7–12", "13–18")


def cell(task: str, position: str, seed: int, *, recipe: dict[str, Any], causal: bool = True) -> Cell:
    """A model on a task; training stops when all fresh questions are right, as in the code of Huang et al. 2025."""
    size = ExactSize(causal=causal)
    return ExactCell(task, position, seed, LENGTH, FACTORS, model=size, train=ExactRecipe(stop_at=1.0, **recipe))


def by_stretch(result: Result, measure: Literal["exact", "stopped", "tokens"]) -> Numbers:
    """One measure of each stretch of lengths, the one within training first."""
    return tuple(stretch[measure] for stretch in result["stretches"])


def learned_tokens(result: Result) -> bool:
    """Where right tokens are what is measured: 90 % of them within the lengths of training."""
    found = result["stretches"][0]["tokens"]
    return found is not None and found >= LEARNED


__all__ = ["FACTORS", "LENGTH", "SPANS", "by_stretch", "cell", "learned", "learned_tokens"]
