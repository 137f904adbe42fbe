"""Reversing a string with randomized positions (Ruoss et al. 2023, arXiv:2305.16843, table 1).

There: an encoder of 5 layers that fills the answer in, strings of up to 40, tested at 41 to 500; right tokens, the best
of 10 seeds and 3 learning rates, on two symbols, where chance is 50 %. Here: 2 layers, strings of up to 6, then 7 to
12, ten symbols, the median over seeds. Positions are drawn when reading, too, as there.
"""

from functools import partial

from gnomon.lab.reproductions.exact_answers import SPANS, by_stretch, cell, learned_tokens
from gnomon.lab.reproductions.frame import Condition, Numbers, Reproduction

RECIPE = {"steps": 800, "batch_size": 24, "lr": 3e-3, "warmup": 50}
REACH = 40  # positions that are drawn from; 2048 there
PUBLISHED: dict[str, tuple[str, Numbers]] = {
    "relative": ("transformer-xl", (None, 0.583)),
    "relative, randomized": (f"transformer-xl(positions='randomized({REACH}, reading=\"sampled\")')", (None, 0.951)),
}

REPRODUCTION = Reproduction(
    name="randpos-reverse",
    source="Ruoss et al. 2023, arXiv:2305.16843, table 1",
    columns=("1–40", "41–500"),
    ours=SPANS[:2],
    conditions=tuple(
        Condition(
            label,
            numbers,
            partial(cell, "reverse", position, recipe=RECIPE, causal=False),
            partial(by_stretch, measure="tokens"),
            learned_tokens,
        )
        for label, (position, numbers) in PUBLISHED.items()
    ),
    ranked=(1,),
    higher=True,
    checked=False,
)

__all__ = ["REPRODUCTION"]
