"""Unique copy with and without positions (Huang et al. 2025, arXiv:2410.02140; numbers of the authors' result files).

There: questions of up to 50 symbols, then 51 to 100 and 101 to 150. Here: up to 6, then 7 to 12 and 13 to 18. APE is
a learned table read from a random start.
"""

from functools import partial

from gnomon.lab.reproductions.exact_answers import SPANS, by_stretch, cell, learned
from gnomon.lab.reproductions.frame import Condition, Numbers, Reproduction

TOKENS = 40  # positions: a question and an answer of 18 with their marks fit
RECIPE = {"steps": 1500, "batch_size": 24, "lr": 5e-3, "warmup": 50}
PUBLISHED: dict[str, tuple[str, Numbers]] = {
    "APE": (f"learned(positions='random-start({TOKENS})')", (1.000, 0.999, 0.987)),
    "NoPE": ("none", (1.000, 0.180, 0.000)),
}

REPRODUCTION = Reproduction(
    name="huang-unique-copy",
    source="Huang et al. 2025, arXiv:2410.02140, results of lacoco-lab/length_generalization",
    columns=("1–50", "51–100", "101–150"),
    ours=SPANS,
    conditions=tuple(
        Condition(
            label,
            numbers,
            partial(cell, "copy-unique", position, recipe=RECIPE),
            partial(by_stretch, measure="stopped"),
            learned,
        )
        for label, (position, numbers) in PUBLISHED.items()
    ),
    ranked=(1, 2),
    higher=True,
)

__all__ = ["REPRODUCTION"]
