"""Frequencies of sinusoids within a whole model: published forms pass, slips are named, choices are not accused."""

import pytest
import torch
from test_positions import GPT
from tiny import Tiny, target
from torch.nn import functional as F
from variants import asked

import gnomon as gn
from gnomon.audit import Torch

LAW, D = "sinusoids are as published", 32
EVEN = torch.arange(0, D, 2, dtype=torch.float64)


def in_turn(sines, cosines):
    return torch.stack([sines.sin(), cosines.cos()], -1).flatten(1)


def side_by_side(sines, cosines):
    return torch.cat([sines.sin(), cosines.cos()], 1)


class Sinusoids(GPT):
    """Sinusoids with these exponents, in a buffer, or made in each call."""

    def __init__(self, sines, cosines=None, laid=in_turn, scale=1.0, base=10000.0, rows=200) -> None:
        torch.manual_seed(0)
        super().__init__(d=D)
        del self.wpe
        angles = (torch.arange(rows)[:, None] * base**-e for e in (sines, sines if cosines is None else cosines))
        self.register_buffer("table", (scale * laid(*angles)).float())

    def entered(self, ids):
        return self.wte(ids) + self.table[: ids.shape[1]]


class Scaled(Sinusoids):
    def entered(self, ids):
        return self.wte(ids) * D**0.5 + self.table[: ids.shape[1]]


RIGHT = EVEN / D


@pytest.mark.parametrize(
    "model",
    [
        Sinusoids(RIGHT),
        Sinusoids(RIGHT, laid=side_by_side),
        Sinusoids(RIGHT, laid=lambda a, b: torch.cat([b.cos(), a.sin()], 1)),
        Sinusoids(RIGHT, scale=0.3),
        Scaled(RIGHT),
        Sinusoids(EVEN / 2 / (D / 2 - 1), laid=side_by_side),
        Sinusoids(RIGHT, rows=20),
        gn.DecoderOnly(vocab_size=40, d_model=32, n_layers=1, n_heads=2, position="sinusoidal"),
    ],
)
def test_published_sinusoids_pass(model):
    assert asked(LAW, gn.audit.target(model)).verdict == "pass"


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (Sinusoids(EVEN / D, (EVEN + 1) / D), "exponents are j/d of each channel"),
        (Sinusoids(2 * EVEN / D, 2 * (EVEN + 1) / D), "exponents are 2j/d of each channel"),
        (Sinusoids(2 * EVEN / D, laid=side_by_side), "exponents are 4i/d"),
        (Sinusoids(-RIGHT), "frequencies grow"),
    ],
)
def test_a_slip_in_the_exponent_is_named(model, says):
    found = asked(LAW, Torch(model))
    assert found.verdict == "FAIL"
    assert says in found.note


class Normed(Sinusoids):
    def entered(self, ids):
        return F.layer_norm(super().entered(ids), (D,))


@pytest.mark.parametrize(
    "model", [GPT(d=D), Sinusoids(RIGHT, base=500.0), Sinusoids(RIGHT / 2), Normed(RIGHT), Normed(2 * EVEN / D)]
)
def test_what_may_be_a_choice_is_not_accused(model):
    assert asked(LAW, Torch(model)).verdict == "not applicable"


@pytest.mark.parametrize("position", ["rope", "alibi", "none", "table"])
def test_models_without_sinusoids_are_not_asked(position):
    assert asked(LAW, target(Tiny(position))).verdict == "not applicable"
