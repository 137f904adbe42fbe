"""Extending RoPE without training (LongRoPE, Ding et al. 2024, arXiv:2402.13753, table 1: Llama-2-7B, no tuning).

There: trained on 4096 tokens, perplexity at 2 and 4 times that on two corpora, which do not agree: YaRN loses on one
and wins on the other. Here: 0.46 million parameters trained on 64 tokens of this machine's text, with a base that is to
64 what 10000 is to 4096: within the training length the slowest pair turns by 0.45 radians here and by 0.47 there.
"""

from functools import partial

from gnomon.lab.cell import Cell, Result
from gnomon.lab.reproductions.alibi_table_2 import learned
from gnomon.lab.reproductions.frame import Condition, Numbers, Reproduction
from gnomon.lab.settings import Recipe
from gnomon.lab.text_cell import AS_TRAINED, text_cell

LENGTH, FACTORS = 64, (1, 2, 4)
BASE = 200
PUBLISHED: dict[str, Numbers] = {  # PG19 at 8 and 16 thousand tokens, Proof-pile at the same; as trained: above 10000
    "linear": (10.65, 20.49, 3.65, 4.93),
    "dynamic": (10.21, 23.29, 3.50, 3.87),
    "yarn": (32.64, 87.89, 3.49, 3.25),
    AS_TRAINED: (1e4, 1e4, 1e4, 1e4),
}


def cell(seed: int) -> Cell:
    """One language model, read under every method."""
    return text_cell(
        f"rope(base={BASE})",
        seed=seed,
        length=LENGTH,
        factors=FACTORS,
        methods=tuple(PUBLISHED),
        train=Recipe(steps=800, warmup=50),
    )


def read(method: str, result: Result) -> Numbers:
    """Perplexity at 2 and 4 times the training length: the same two for both published corpora."""
    found = {m["length"] // LENGTH: m["perplexity"] for m in result["measured"] if m["method"] == method}
    return found[2], found[4], found[2], found[4]


REPRODUCTION = Reproduction(
    name="yarn-zero-shot",
    source="Ding et al. 2024, arXiv:2402.13753, table 1",
    columns=("PG19 8k", "PG19 16k", "Proof-pile 8k", "Proof-pile 16k"),
    ours=("128", "256", "128", "256"),
    conditions=tuple(
        Condition(name, numbers, cell, partial(read, name), learned) for name, numbers in PUBLISHED.items()
    ),
    ranked=(0, 1, 2, 3),
    higher=False,
)

__all__ = ["REPRODUCTION"]
