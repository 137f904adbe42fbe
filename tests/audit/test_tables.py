"""Frequencies are compared with the published formula, and what went wrong with them is told."""

from dataclasses import dataclass, replace

import pytest
import torch
from variants import asked

from gnomon.audit import Target
from gnomon.audit.laws.tables import explain
from gnomon.positions.scaling import NTK, DynamicNTK, Linear, Llama3, LongRoPE, Scaling, YaRN, plain_frequencies

LAW, D, BASE, L = "scaling as published", 64, 10000.0, 1024
SCALINGS = [
    Linear(4.0),
    NTK(4.0),
    YaRN(4.0, original_length=L),
    Llama3(8.0, original_length=L),
    DynamicNTK(4.0, original_length=L),
    LongRoPE(4.0, L, tuple(1 + i / 32 for i in range(32)), tuple(1.0 + i for i in range(32))),
]


@dataclass
class Turning(Target):
    """A target that turns as `used` says where its config promises `promised`."""

    used: Scaling | float = BASE
    promised: Scaling | float = BASE

    def angles(self, length):
        return angles(self.used, length), angles(self.promised, length)


def angles(by: Scaling | float, length: int):
    """Of a scaling at the usual base, or of a base alone."""
    if isinstance(by, Scaling):
        at = by.frequencies_at(torch.tensor(length), BASE, D)
        frequencies = torch.tensor(by.frequencies(BASE, D), dtype=torch.float64) if at is None else at
    else:
        frequencies = torch.tensor(plain_frequencies(by, D), dtype=torch.float64)
    magnitude = by.magnitude if isinstance(by, Scaling) else 1.0
    turned = torch.arange(length, dtype=torch.float64)[:, None] * frequencies
    return torch.cat([turned, torch.full((length, 1), magnitude, dtype=torch.float64)], 1).float()


def judged(used, promised):
    return asked(LAW, Turning("t", 8, limit=L, can=frozenset({"angles"}), used=used, promised=promised))


@pytest.mark.parametrize("scaling", SCALINGS, ids=lambda s: s.kind)
def test_what_is_promised_is_right(scaling):
    assert judged(scaling, scaling).verdict == "pass"


class Inverted(YaRN):
    """Fast pairs stretched, slow ones kept."""

    def frequencies(self, base, d):
        right = super().frequencies(base, d)
        return [t / 4 + (t - r) for t, r in zip(plain_frequencies(base, d), right, strict=True)]


@pytest.mark.parametrize(
    ("used", "promised", "says"),
    [
        (Inverted(4.0, original_length=L), YaRN(4.0, original_length=L), "the ramp is the wrong way round"),
        (BASE, Linear(4.0), "the factor 4 is ignored"),
        (
            replace(YaRN(4.0, original_length=L), attention_factor=1.0),
            YaRN(4.0, original_length=L),
            "multiplied by 1, ",
        ),
        (BASE, Llama3(8.0, original_length=L), "the factor is ignored: every pair turns as without scaling"),
        (BASE, 500000.0, "the base is 10000, not 500000: it was not read"),
        (BASE, DynamicNTK(4.0, original_length=L), "the base is 10000, not 5"),
        (Linear(4.0), BASE, "every pair turns 4 times too slowly"),
        (Linear(4.0), DynamicNTK(4.0, original_length=L), "every pair turns 4 times too slowly"),
        (Linear(4.0), Llama3(4.0, original_length=L), "the factor is applied to all pairs"),
        (SCALINGS[-1], replace(SCALINGS[-1], long_factor=SCALINGS[-1].short_factor), "turns 0.06"),
    ],
)
def test_what_went_wrong_is_told(used, promised, says):
    found = judged(used, promised)
    assert found.verdict == "FAIL"
    assert says in found.note


def test_the_text_that_shows_it_is_named():
    """Dynamic scaling that is ignored is right within the trained length."""
    assert judged(BASE, DynamicNTK(4.0, original_length=L)).note.startswith("in a text of 2048 tokens")
    assert judged(Linear(4.0), BASE).note.startswith("in a text of 16 tokens")


def test_pairs_that_stand_still_are_counted():
    moving, still = torch.tensor([1.0, 0.5, 1.0]), torch.tensor([1.0, 0.0, 1.0])
    assert explain(moving, still) == "0 pairs stand still, not 1"


def test_a_target_without_a_table_is_not_asked():
    assert asked(LAW, Turning("t", 8)).note == "t shows no table of angles"
