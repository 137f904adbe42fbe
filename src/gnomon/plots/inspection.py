"""One text on its way through a model, with every number kept (S11).

ids -> rows of the token table -> + position -> attention in each layer -> output -> the next token
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from gnomon.errors import BadValue, checked
from gnomon.generate import evaluating
from gnomon.models import DecoderOnly
from gnomon.positions import PositionEncoding
from gnomon.shapes import Float
from gnomon.trace import Trace

if TYPE_CHECKING:
    from gnomon.plots.picture import Picture


@dataclass(frozen=True)
class Guess:
    """One candidate for the next token."""

    id: int
    token: str
    logit: float
    probability: float


@dataclass(frozen=True)
class Inspection:
    """What one forward over one row of T tokens showed; tensors are float32 on the CPU.

    vectors     (T, D)      token vectors, scaled
    position    (T, D)      what an encoding that acts at the input added, else None
    hidden      L + 1 times (T, D): the input of the first block, and the output of each
    attention   L times (H, T, T): weights, a row per query
    output      (T, D)      what the head reads; logits (V,) after the last token
    guesses     the most probable next tokens
    encodings   the encoding that acts in each layer's attention, or the one at the input
    """

    ids: list[int]
    tokens: list[str]
    vectors: Float
    position: Float | None
    hidden: list[Float]
    attention: list[Float]
    output: Float
    logits: Float
    guesses: list[Guess]
    encodings: list[PositionEncoding]

    def looks(self, layer: int, query: int = -1, top: int = 5) -> list[tuple[int, float]]:
        """The keys that a query looks at most in a layer (0 is the first), with their weights, mean over heads."""
        weights = self.attention[layer].mean(0)[query]
        best = weights.topk(min(top, len(weights)))
        return [(int(k), float(p)) for p, k in zip(best.values, best.indices, strict=True)]

    def picture(self, lang: str = "en") -> "Picture":
        """All of it on one page."""
        from gnomon.plots.flow import flow

        return flow(self, lang)

    def _repr_png_(self) -> bytes:
        return self.picture().render()

    def to_dict(self) -> dict[str, Any]:
        """Shapes and numbers as plain data."""
        T, D = self.vectors.shape
        return {
            "ids": self.ids,
            "tokens": self.tokens,
            "position_encoding": [encoding.name for encoding in self.encodings],
            "shapes": {
                "ids": [1, T], "vectors": [1, T, D],
                "position": None if self.position is None else [1, *self.position.shape],
                "attention": [[1, *a.shape] for a in self.attention], "output": [1, T, D],
                "logits": [1, T, len(self.logits)],
            },
            "vectors": self.vectors.tolist(),
            "position": None if self.position is None else self.position.tolist(),
            "input": self.hidden[0].tolist(),
            "attention": [a.tolist() for a in self.attention],
            "output": self.output.tolist(),
            "next": [vars(guess) for guess in self.guesses],
        }  # fmt: skip


@torch.no_grad()
@checked
def inspect(model: DecoderOnly, text: str | Sequence[int], top: int = 8) -> Inspection:
    """Follow a text, or token ids, through a model. The model is left as it was, training mode included.

    Raises BadValue for an empty text, a text without a tokenizer, an id outside the vocabulary, and more tokens than a
    learned table has rows.
    """
    if isinstance(text, str) and model.tokenizer is None:
        raise BadValue("this model has no tokenizer to read text with; give token ids")
    ids = model.tokenizer.encode(text) if isinstance(text, str) and model.tokenizer else [int(i) for i in text]
    if not ids:
        raise BadValue("there is nothing to inspect: the text has no tokens")
    trace = Trace()
    row = torch.tensor([ids], device=next(model.parameters()).device)
    with evaluating(model):
        h = model.hidden(row, trace=trace)
        logits = model.head(h)
    assert trace.tokens is not None
    last = _plain(logits[0, -1])
    return Inspection(
        ids,
        [token_name(model, i) for i in ids],
        _plain(trace.tokens[0]),
        None if trace.position is None else _plain(trace.position[0]),
        [_plain(x[0]) for x in trace.hidden],
        [_plain(a[0]) for a in trace.attention],
        _plain(h[0]),
        last,
        _guesses(model, last, top),
        encodings_of(model),
    )


def encodings_of(model: DecoderOnly) -> list[PositionEncoding]:
    """The one at the input if there is one, else that of each layer, without repetition."""
    if model.input.position is not None:
        return [model.input.position]
    return list(dict.fromkeys(model.position_of(layer) for layer in range(model.config.n_layers)))


def token_name(model: DecoderOnly, i: int) -> str:
    """How a token is shown: the tokenizer's piece, or the id where there is none."""
    if model.tokenizer is None or i >= model.tokenizer.vocab_size:
        return str(i)
    return model.tokenizer.tokens([i])[0]


def _guesses(model: DecoderOnly, logits: Float, top: int) -> list[Guess]:
    p = logits.softmax(-1)
    best = p.topk(min(top, len(p))).indices.tolist()
    return [Guess(i, token_name(model, i), float(logits[i]), float(p[i])) for i in best]


def _plain(x: Float) -> Float:
    return x.detach().float().cpu()


__all__ = ["Guess", "Inspection", "encodings_of", "inspect", "token_name"]
