"""Passkeys: a number hidden in a long text, asked for at its end (Mohtashami and Jaggi 2023, arXiv:2305.16300).

The filler is text, each time another piece, and not one sentence again and again, which a model could ignore. A model
that cannot do it at half its training length says nothing about longer ones: that is the gate.
"""

from dataclasses import dataclass

import numpy as np
import torch

from gnomon.data import Tokenizer
from gnomon.data.store import Ints
from gnomon.generate import evaluation_mode
from gnomon.models import DecoderOnly

NEEDLE = "\nThe pass key is {key}. Remember it: {key} is the pass key.\n"
QUESTION = "\nWhat is the pass key? The pass key is"
DEPTHS = (0.1, 0.5, 0.9)
GATE = 0.9


@dataclass(frozen=True)
class Question:
    """Ids of a text that asks for its key, and of the answer."""

    ids: list[int]
    answer: list[int]


def question(
    tokenizer: Tokenizer, filler: Ints, length: int, depth: float, rng: np.random.Generator
) -> Question | None:
    """A text of `length` tokens with its answer, the key at `depth`; None where there is no room for it."""
    key = str(rng.integers(10_000, 100_000))
    needle, asked = tokenizer.encode(NEEDLE.format(key=key)), tokenizer.encode(QUESTION)
    answer = tokenizer.encode(f" {key}")
    room = length - len(needle) - len(asked) - len(answer)
    if room < 2 or room >= len(filler):
        return None
    start = int(rng.integers(len(filler) - room))
    before = round(depth * room)
    piece = filler[start : start + room].tolist()
    return Question([*piece[:before], *needle, *piece[before:], *asked], answer)


@torch.no_grad()
def found(model: DecoderOnly, asked: Question) -> bool:
    """Whether the model writes the answer, greedily: every token of it is the likeliest after those before it."""
    device = next(model.parameters()).device
    ids = torch.tensor([[*asked.ids, *asked.answer]], device=device)
    n = len(asked.answer)
    with evaluation_mode(model):
        said = model.head(model.hidden(ids[:, :-1])[:, -n:]).argmax(-1)
    return said[0].tolist() == asked.answer


def rate(model: DecoderOnly, filler: Ints, length: int, depth: float, trials: int, seed: int = 0) -> float | None:
    """The share of keys found; the same texts for every model. None where none fits."""
    assert model.tokenizer is not None
    rng = np.random.default_rng([seed, length, round(100 * depth)])
    asked = [question(model.tokenizer, filler, length, depth, rng) for _ in range(trials)]
    answers = [found(model, one) for one in asked if one is not None]
    return sum(answers) / len(answers) if answers else None


__all__ = ["DEPTHS", "GATE", "Question", "found", "question", "rate"]
