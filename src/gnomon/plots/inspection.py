"""One text on its way through a model, with every number kept.

ids -> rows of the token table -> + position -> attention in each layer -> output -> what the head says of it

A decoder-only model names the next token, an encoder says what its head is for, and an encoder-decoder reads a source
the same way before its decoder looks at it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from gnomon.embed import InputEmbedding, InputLayer, TokenEmbedding
from gnomon.errors import BadValue, check_arguments
from gnomon.generate import evaluation_mode, generate
from gnomon.generate.prompts import Kind, encode_prompts
from gnomon.layout import Layout
from gnomon.models import DecoderOnly, EncoderDecoder, EncoderOnly, Model
from gnomon.models.heads import ClassHead, LabelHead, PooledHead
from gnomon.models.stack import Stack
from gnomon.plots.picture import Picture, draw
from gnomon.positions import PositionEncoding
from gnomon.shapes import Float
from gnomon.trace import Trace

WRITTEN = 16  # tokens of an answer that an encoder-decoder writes itself
Answer = Literal["next", "each", "classes", "vector"]
Enters = Literal["input", "input_normed", "input_projected"]


@dataclass(frozen=True)
class Candidate:
    """One candidate: for the next token, for what a token is, or for the class of the text."""

    id: int
    token: str
    logit: float
    probability: float


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One row of T tokens on its way through one stack; tensors are float32 on the CPU.

    vectors     (T, D)      token vectors, scaled
    position    (T, D)      what an encoding that acts at the input added, else None
    enters      what makes the first block's input of them: their sum, a norm of it, or a projection of both
    hidden      L + 1 times (T, D): the input of the first block, and the output of each
    attention   L times (H, T, T): weights, a row per query
    encodings   the encoding that acts in each layer's attention, or the one at the input
    """

    ids: list[int]
    tokens: list[str]
    vectors: Float
    position: Float | None
    enters: Enters
    hidden: list[Float]
    attention: list[Float]
    encodings: list[PositionEncoding]

    def looks(self, layer: int, query: int = -1, top: int = 5) -> list[tuple[int, float]]:
        """The keys that a query looks at most in a layer (0 is the first), with their weights, mean over heads."""
        return largest_weights(self.attention[layer].mean(0)[query], top)

    def to_dict(self) -> dict[str, Any]:
        """Numbers as plain data."""
        return {
            "ids": self.ids,
            "tokens": self.tokens,
            "position_encoding": [encoding.name for encoding in self.encodings],
            "vectors": self.vectors.tolist(),
            "position": None if self.position is None else self.position.tolist(),
            "input": self.hidden[0].tolist(),
            "attention": [a.tolist() for a in self.attention],
        }


@dataclass(frozen=True, kw_only=True)
class Inspection(Reading):
    """What one forward showed. Of an encoder-decoder these are the decoder's numbers, and `source` the encoder's.

    answer    "next": candidates for the token after the last; "each": the best guess for every token; "classes":
              classes of the whole text; "vector": no guesses, but a vector of the whole text
    output    (T, D)  what the head reads
    logits    (V,) after the last token, (T, V) or (T, C) for each one, or (C,) of the text; None for a vector
    vector    (D,)    of the whole text, or None
    guesses   the most probable ones, or one for each token
    cross     L times (H, T, S): cross-attention weights over the source's S tokens; empty without a source
    """

    architecture: str
    answer: Answer
    output: Float
    logits: Float | None
    vector: Float | None
    guesses: list[Candidate]
    cross: list[Float]
    source: Reading | None

    def looks_at_source(self, layer: int, query: int = -1, top: int = 5) -> list[tuple[int, float]]:
        """The source's tokens that a query looks at most in a layer of the decoder, mean over heads."""
        return largest_weights(self.cross[layer].mean(0)[query], top)

    def picture(self, lang: str = "en") -> Picture:
        """All of it on one page."""
        return draw(self, lang)

    def _repr_png_(self) -> bytes:
        return self.picture().render()

    def to_dict(self) -> dict[str, Any]:
        """Shapes and numbers as plain data."""
        T, D = self.vectors.shape
        output = self.vector if self.logits is None else self.logits
        assert output is not None
        whole_row = [1, T, len(output)] if self.answer == "next" else [1, *output.shape]
        return {
            "architecture": self.architecture,
            **super().to_dict(),
            "answer": self.answer,
            "shapes": {
                "ids": [1, T],
                "vectors": [1, T, D],
                "position": None if self.position is None else [1, *self.position.shape],
                "attention": [[1, *a.shape] for a in self.attention],
                "output": [1, T, D],
                "vector" if self.logits is None else "logits": whole_row,
            },
            "output": self.output.tolist(),
            "vector": None if self.vector is None else self.vector.tolist(),
            "next" if self.answer == "next" else "guesses": [vars(guess) for guess in self.guesses],
            **(
                {}
                if self.source is None
                else {
                    "source": self.source.to_dict(),
                    "cross_attention": [a.tolist() for a in self.cross],
                }
            ),
        }


@torch.no_grad()
@check_arguments
def inspect(
    model: Model, text: str | Sequence[int], top: int = 8, target: str | Sequence[int] | None = None
) -> Inspection:
    """Follow a text, or token ids, through a model. The model is left as it was, training mode included.

    text    what the model reads: of an encoder-decoder, the source. Control ids that the tokenizer expects around a
            text are put there; ids are taken as they are
    target  of an encoder-decoder: what it has written about the source; by default what it writes now, greedily, up to
            16 tokens. The id that its texts start with is put before it

    Raises BadValue for an empty text, a text without a tokenizer, an id outside the vocabulary, and more tokens than a
    learned table has rows.
    """
    with evaluation_mode(model):
        if isinstance(model, EncoderDecoder):
            return _inspect_encoder_decoder(model, _ids(model, text, "source"), target, top)
        if target is not None:
            raise BadValue(f"a target goes with a source: this model is {model.architecture} and reads one text")
        if isinstance(model, EncoderOnly):
            return _inspect_encoder(model, _ids(model, text, "source"), top)
        if isinstance(model, DecoderOnly):
            return _inspect_decoder(model, _ids(model, text, "prompt"), top)
    raise BadValue(f"no way to inspect a model that is {model.architecture} is known")


def _ids(model: Model, text: str | Sequence[int], kind: Kind) -> list[int]:
    c = model.config
    size = c.vocab_size if kind == "prompt" or c.source_vocab_size is None else c.source_vocab_size
    if isinstance(text, str) and model.tokenizer is None:
        raise BadValue("this model has no tokenizer to read text with; give token ids")
    if not text:
        raise BadValue("there is nothing to inspect: the text has no tokens")
    return encode_prompts(
        text if isinstance(text, str) else [text], model.tokenizer, size, empty=kind == "prompt", kind=kind
    )[0]


def _inspect_decoder(model: DecoderOnly, ids: list[int], top: int) -> Inspection:
    trace = Trace()
    h = model.hidden(_row(model, ids), trace=trace)
    logits = _plain(model.head(h[:, -1:])[0, -1])
    return Inspection(
        **_read(model, ids, trace, model.stack),
        architecture=model.architecture,
        answer="next",
        output=_plain(h[0]),
        logits=logits,
        vector=None,
        guesses=_guesses(model, logits, top),
        cross=[],
        source=None,
    )


def _inspect_encoder(model: EncoderOnly, ids: list[int], top: int) -> Inspection:
    trace = Trace()
    row = _row(model, ids)
    model.check(Layout.dense(1, len(ids), row.device))
    memory = model.encode(row, trace=trace)
    output = _plain(model.head(memory)[0])
    answer: Answer = "each"
    guesses: list[Candidate] = []
    if isinstance(model.head, ClassHead):
        answer, guesses = "classes", _guesses(model, output, top, classes=True)
    elif isinstance(model.head, PooledHead):
        answer = "vector"
    else:
        classes = isinstance(model.head, LabelHead)
        guesses = [guess for logits in output for guess in _guesses(model, logits, 1, classes)]
    return Inspection(
        **_read(model, ids, trace, model.stack),
        architecture=model.architecture,
        answer=answer,
        output=_plain(memory.states[0]),
        logits=None if answer == "vector" else output,
        vector=output if answer == "vector" else None,
        guesses=guesses,
        cross=[],
        source=None,
    )


def _inspect_encoder_decoder(
    model: EncoderDecoder, ids: list[int], target: str | Sequence[int] | None, top: int
) -> Inspection:
    beside, trace, row = Trace(), Trace(), _row(model, ids)
    model.check(Layout.dense(1, len(ids), row.device))
    memory = model.encode(row, trace=beside)
    written = _target(model, ids, target)
    h = model.hidden(_row(model, written), trace=trace, memory=memory)
    logits = _plain(model.head(h[:, -1:])[0, -1])
    return Inspection(
        **_read(model, written, trace, model.decoder),
        architecture=model.architecture,
        answer="next",
        output=_plain(h[0]),
        logits=logits,
        vector=None,
        guesses=_guesses(model, logits, top),
        cross=[_plain(a[0]) for a in trace.cross],
        source=Reading(**_read(model, ids, beside, model.encoder)),
    )


def _target(model: EncoderDecoder, source: list[int], target: str | Sequence[int] | None) -> list[int]:
    """The ids that the decoder reads: the start, and what was written after it."""
    tokenizer = model.tokenizer
    start = model.start if model.start is not None or tokenizer is None else tokenizer.eos_id
    if target is not None:
        ids = _ids(model, target, "prompt") if target else []
        return [0 if start is None else start, *ids]
    if start is None:
        return [0]
    written = generate(model, source=[source], max_new_tokens=WRITTEN)[0].ids
    return [start, *(i for i in written if i != start and i not in model.ends)]


def _read(model: Model, ids: list[int], trace: Trace, stack: Stack) -> dict[str, Any]:
    """The fields of a Reading, from what a forward wrote down."""
    layer: InputEmbedding = model.input
    if isinstance(model, EncoderDecoder) and stack is model.encoder and model.source_input is not None:
        layer = model.source_input
    assert trace.tokens is not None
    added = layer.position
    within = [stack.position_of(n) for n in range(stack.depth)]
    return {
        "ids": ids,
        "tokens": [token_name(model, i) for i in ids],
        "vectors": _plain(trace.tokens[0]),
        "position": None if trace.position is None else _plain(trace.position[0]),
        "enters": "input_projected" if layer.project is not None else "input_normed" if layer.norm else "input",
        "hidden": [_plain(x[0]) for x in trace.hidden],
        "attention": [_plain(a[0]) for a in trace.attention],
        "encodings": list(dict.fromkeys(within)) if added is None else [added],
    }


def table_of(model: Model, source: bool = False) -> TokenEmbedding:
    """The table that the ids are looked up in: of a source its own, where it has one."""
    own = model.source_input if source and isinstance(model, EncoderDecoder) else None
    return own.tokens if isinstance(own, InputLayer) else model.input.tokens


def largest_weights(weights: Float, top: int) -> list[tuple[int, float]]:
    """The places of the `top` largest weights (S,), and these."""
    best = weights.topk(min(top, len(weights)))
    return [(int(k), float(p)) for p, k in zip(best.values, best.indices, strict=True)]


def token_name(model: Model, i: int) -> str:
    """How a token is shown: the tokenizer's piece, or the id where there is none."""
    if model.tokenizer is None or i >= model.tokenizer.vocab_size:
        return str(i)
    return model.tokenizer.tokens([i])[0]


def _guesses(model: Model, logits: Float, top: int, classes: bool = False) -> list[Candidate]:
    p = logits.softmax(-1)
    best = p.topk(min(top, len(p))).indices.tolist()
    labels = model.labels if classes else None
    names = {i: token_name(model, i) if not classes else str(i) if labels is None else labels[i] for i in best}
    return [Candidate(i, names[i], float(logits[i]), float(p[i])) for i in best]


def _row(model: Model, ids: list[int]) -> torch.Tensor:
    return torch.tensor([ids], device=next(model.parameters()).device)


def _plain(x: Float) -> Float:
    return x.detach().float().cpu()


__all__ = ["Candidate", "Inspection", "Reading", "inspect", "table_of", "token_name"]
