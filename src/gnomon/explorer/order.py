"""The question `order`: two words of a sentence change places. What does a model notice, with position and without?

Position is off where every token is said to sit at position 0; who may look at whom is left as it is, or opened to both
sides. With f the outputs, s the scores and P the exchange of words, a model that sees no order obeys f(b) = P f(a) and
s(b) = P s(a) P'. A causal mask alone tells the order from the second layer on.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch

from gnomon.attention import MultiHeadAttention
from gnomon.attention.cross import CrossAttention
from gnomon.errors import BadValue
from gnomon.explorer.flow import CANDIDATES, candidates, names
from gnomon.explorer.questions import Answer, check_length, question
from gnomon.layout import Layout
from gnomon.models import DecoderOnly, EncoderDecoder, EncoderOnly, Model
from gnomon.models.similarity import require_tokenizer
from gnomon.shapes import Float
from gnomon.trace import Trace


@dataclass(frozen=True)
class Seen:
    """What one reading gave: layer 1's scores (H, T, T) and weights (T, T), mean over heads; outputs (T, D)."""

    scores: Float
    weights: Float
    outputs: Float


@question
def order(model: Model, text: str, first: int = 1, second: int = 4, both_sides: bool = False) -> Answer:
    """The words number `first` and `second` of a text (from 0) change places. both_sides: no causal mask."""
    spans = _word_spans(model, text)
    if not (0 <= first < len(spans) and 0 <= second < len(spans)) or first == second:
        raise BadValue(f"the text has words 0 to {len(spans) - 1}: give two different ones, got {first} and {second}")
    places = list(range(len(spans)))
    places[first], places[second] = second, first
    before, after = (require_tokenizer(model).frame) if not isinstance(model, DecoderOnly) else ((), ())
    starts = [len(before) + sum(map(len, spans[:n])) for n in range(len(spans))]
    inner = [starts[n] + k for n in places for k in range(len(spans[n]))]
    total = len(before) + sum(map(len, spans))
    back = [*range(len(before)), *inner, *range(total, total + len(after))]
    a = [*before, *(i for span in spans for i in span), *after]
    b = [a[n] for n in back]
    check_length(model, a)
    with _open(model) if both_sides else _as_it_is():
        found = {name: _compared(model, a, b, back, on) for name, on in (("on", True), ("off", False))}
    return {
        "words": [require_tokenizer(model).decode(span).strip() for span in spans],
        "a": names(model, a),
        "b": names(model, b),
        "back": back,
        "causal": _causal(model) and not both_sides,
        "layers": model.config.n_layers,
        **found,
    }


def _word_spans(model: Model, text: str) -> list[list[int]]:
    """The ids of each word, read with the blank before it."""
    tokenizer, words = require_tokenizer(model), text.split()
    if len(words) < 2:
        raise BadValue("give a sentence of at least two words")
    spans = [list(tokenizer.encode(word if n == 0 else f" {word}")) for n, word in enumerate(words)]
    if not all(spans):
        raise BadValue("this model has no tokens for one of these words: give others")
    return spans


def _compared(model: Model, a: list[int], b: list[int], back: list[int], on: bool) -> Answer:
    """How far b's reading is from a's with its tokens put into b's order."""
    one, other = _seen(model, a, on), _seen(model, b, on)
    gap = other.scores - one.scores[:, back][:, :, back]
    return {
        "scores": float(gap[gap.isfinite()].abs().max()),
        "outputs": float((other.outputs - one.outputs[back]).abs().max()),
        "pooled": float((other.outputs.mean(0) - one.outputs.mean(0)).abs().max()),
        "size": float(one.outputs.abs().max()),
        "weights_a": one.weights,
        "weights_b": other.weights,
        "next_a": _next(model, one),
        "next_b": _next(model, other),
    }


def _seen(model: Model, ids: list[int], on: bool) -> Seen:
    device = next(model.parameters()).device
    row, trace = torch.tensor([ids], device=device), Trace(scores=[])
    at = Layout.dense(1, len(ids), device)
    if not on:
        still = torch.zeros_like(at.pos)
        at = Layout(still, at.step, None, torch.ones_like(still), "custom")
    model.check(at)
    if isinstance(model, DecoderOnly):
        outputs = model.hidden(row, at, trace=trace)
    elif isinstance(model, EncoderOnly | EncoderDecoder):
        outputs = model.encode(row, at, trace=trace).states
    else:
        raise BadValue(f"no way to read a sentence with a model that is {model.architecture} is known")
    assert trace.scores
    return Seen(trace.scores[0][0].float(), trace.attention[0][0].float().mean(0), outputs[0].float())


def _next(model: Model, seen: Seen) -> list[Answer] | None:
    if not isinstance(model, DecoderOnly):
        return None
    return candidates(model, model.head(seen.outputs[None, -1:].to(next(model.parameters()).dtype))[0, -1], CANDIDATES)


def _causal(model: Model) -> bool:
    return isinstance(model, DecoderOnly) and model.config.causal


@contextmanager
def _open(model: Model) -> Iterator[None]:
    """Without causal masks and windows while the context lasts."""
    parts = [m for m in model.modules() if isinstance(m, MultiHeadAttention) and not isinstance(m, CrossAttention)]
    kept = [part.settings for part in parts]
    try:
        for part in parts:
            part.settings = replace(part.settings, causal=False, window=None)
        yield
    finally:
        for part, settings in zip(parts, kept, strict=True):
            part.settings = settings


@contextmanager
def _as_it_is() -> Iterator[None]:
    yield


__all__ = ["order"]
