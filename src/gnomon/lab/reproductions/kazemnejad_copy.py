"""Copying under five encodings (Kazemnejad et al. 2023, arXiv:2305.19466, figures of the copy and reverse tasks).

There: about 107 million parameters, questions of 1 to 20, tested to 40; the paper has figures and no table, so what is
compared is the order read from them, as ranks: without position and T5's bias copy far past training, ALiBi breaks soon
after it, RoPE and sinusoids at once. Here: questions of up to 6, then 7 to 12.
"""

from functools import partial

from gnomon.lab.reproductions.exact_answers import SPANS, by_stretch, cell, learned
from gnomon.lab.reproductions.frame import Condition, Reproduction

RECIPE = {"steps": 1500, "batch_size": 24, "lr": 5e-3, "warmup": 50}
RANKS = {"none": 1.0, "t5": 1.0, "alibi": 2.0, "rope": 3.0, "sinusoidal": 3.0}

REPRODUCTION = Reproduction(
    name="kazemnejad-copy",
    source="Kazemnejad et al. 2023, arXiv:2305.19466, figures of the copy task",
    columns=("1–20", "21–40"),
    ours=SPANS[:2],
    conditions=tuple(
        Condition(
            name,
            (None, rank),
            partial(cell, "copy-unique", name, recipe=RECIPE),
            partial(by_stretch, measure="stopped"),
            learned,
        )
        for name, rank in RANKS.items()
    ),
    ranked=(1,),
    higher=True,
    ranks=True,
)

__all__ = ["REPRODUCTION"]
