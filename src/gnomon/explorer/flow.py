"""The question `flow`: one text on its way through a model, a layer at a time, and any vector on that way.

Of a long text in a deep model the attention of all layers is gigabytes, so a forward keeps the layer that is looked at.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, get_args

import torch
from torch import nn

from gnomon.errors import BadValue, unknown
from gnomon.explorer.questions import Answer, check_length, question
from gnomon.generate import generate
from gnomon.generate.prompts import Kind, encode_prompts
from gnomon.layout import Layout
from gnomon.models import DecoderOnly, EncoderDecoder, EncoderOnly, Model
from gnomon.models.heads import ClassHead, LabelHead, PooledHead
from gnomon.models.stack import Stack
from gnomon.plots.inspection import WRITTEN, token_name
from gnomon.shapes import Float
from gnomon.trace import Trace

Side = Literal["reader", "writer"]
Stage = Literal["token", "position", "input", "attention", "feed_forward", "layer", "output"]

CANDIDATES = 12


@dataclass
class OneLayer(Trace):
    """A trace that keeps the attention of one layer, and of the others how it is spread."""

    layer: int = 0
    scores: list[Float] | None = field(default_factory=list)
    cross_scores: list[Float] | None = field(default_factory=list)
    entropies: list[Float] = field(default_factory=list)  #: (H,) of each layer, in nats, mean over the queries
    wrote: dict[str, list[Float]] = field(default_factory=dict)  #: what each sublayer added, (T, D) each

    def add_attention(self, p: Float) -> None:
        """Keep the layer that is looked at."""
        self.entropies.append(-(p * p.clamp(min=1e-30).log()).sum(-1).mean((0, 2)))
        self.attention.append(p[0] if len(self.attention) == self.layer else p.new_empty(0))

    def add_scores(self, s: Float) -> None:
        """Keep the layer that is looked at."""
        _keep(self.scores, s, self.layer)

    def add_cross(self, p: Float) -> None:
        """Keep the layer that is looked at."""
        _keep(self.cross, p, self.layer)

    def add_cross_scores(self, s: Float) -> None:
        """Keep the layer that is looked at."""
        _keep(self.cross_scores, s, self.layer)

    @contextmanager
    def watching(self, stack: Stack) -> Iterator[None]:
        """Write down what attention, cross-attention and feed-forward networks add, while the context lasts."""
        with ExitStack() as hooks:
            for name in ("attention", "cross", "ffn"):
                for block in stack.blocks:
                    if isinstance(part := getattr(block, name, None), nn.Module):
                        hook = part.register_forward_hook(lambda _m, _a, out, name=name: self._add_wrote(name, out))
                        hooks.callback(hook.remove)
            yield

    def _add_wrote(self, name: str, out: Float) -> None:
        self.wrote.setdefault(name, []).append(out.detach()[0])


def _keep(into: list[Float] | None, x: Float, layer: int) -> None:
    if into is not None:
        into.append(x.detach()[0] if len(into) == layer else x.new_empty(0))


@dataclass(frozen=True)
class Read:
    """One side's ids, and what a forward over them wrote down."""

    ids: list[int]
    trace: OneLayer
    output: Float  # (T, D), what the head reads


@question
def flow(model: Model, text: str, target: str = "", layer: int = 0, head: int = 0, side: Side = "writer") -> Answer:
    """A text through a model. head counts from 0; side: of an encoder-decoder, the one whose attention is shown."""
    reader, writer, shown = _sides(model, text, target, layer, side)
    trace, layer = shown.trace, shown.trace.layer
    heads = len(trace.attention[layer])
    if not 0 <= head < heads:
        raise BadValue(f"this layer has heads 0 to {heads - 1}, got {head}")
    answer: Answer = {
        "architecture": model.architecture,
        "layers": len(trace.attention),
        "heads": heads,
        "width": model.config.d_model,
        "encodings": _encodings(model),
        "tokens": names(model, shown.ids),
        "ids": shown.ids,
        "source": None if reader is None else names(model, reader.ids),
        "size": {
            "token": _norms(trace.tokens),
            "position": _norms(trace.position),
            "stream": torch.stack([x[0].float().norm(dim=-1) for x in trace.hidden]),
            "attention": _norms(trace.wrote.get("attention")),
            "cross": _norms(trace.wrote.get("cross")),
            "feed_forward": _norms(trace.wrote.get("ffn")),
        },
        "entropy": torch.stack(trace.entropies),
        "weights": trace.attention[layer][head],
        "scores": (trace.scores or [])[layer][head],
        "cross": trace.cross[layer][head] if trace.cross else None,
        "cross_scores": (trace.cross_scores or [])[layer][head] if trace.cross else None,
    }
    return {**answer, **_answers(model, writer)}


@question
def vector(
    model: Model, text: str, stage: str, token: int, target: str = "", layer: int = 0, side: Side = "writer"
) -> Answer:
    """The numbers (D,) of one token at one stage of its way."""
    if stage not in get_args(Stage):
        raise unknown("stage", stage, get_args(Stage))
    _, _, shown = _sides(model, text, target, layer, side)
    trace, layer = shown.trace, shown.trace.layer
    if not 0 <= token < len(shown.ids):
        raise BadValue(f"there are tokens 0 to {len(shown.ids) - 1}, got {token}")
    found = {
        "token": trace.tokens,
        "position": trace.position,
        "input": trace.hidden[0],
        "attention": trace.wrote["attention"][layer],
        "feed_forward": trace.wrote["ffn"][layer],
        "layer": trace.hidden[layer + 1],
        "output": shown.output,
    }[stage]
    if found is None:
        raise BadValue("no position is added at the input of this model")
    return {"stage": stage, "values": found.flatten(0, -2)[token].float()}


def _sides(model: Model, text: str, target: str, layer: int, side: str) -> tuple[Read | None, Read, Read]:
    """Encoder and decoder, or the only stack, and the one that is looked at."""
    if side not in get_args(Side):
        raise unknown("side", side, get_args(Side))
    reader, writer = _read(model, text, target, layer)
    return reader, writer, reader if side == "reader" and reader is not None else writer


@lru_cache(maxsize=1)  # a page looks at one head, one token after another of the same reading
def _read(model: Model, text: str, target: str, layer: int) -> tuple[Read | None, Read]:
    """The sides of a model: (encoder, decoder) of an encoder-decoder, (None, its only stack) of the others."""
    stacks = [part for part in model.modules() if isinstance(part, Stack)]
    depth = max(stack.depth for stack in stacks)
    if not 0 <= layer < depth:
        raise BadValue(f"this model has layers 0 to {depth - 1}, got {layer}")
    ids = ids_of(model, text, "prompt" if isinstance(model, DecoderOnly) else "source")
    trace = OneLayer(layer=min(layer, stacks[0].depth - 1))
    row = torch.tensor([ids], device=next(model.parameters()).device)
    model.check(Layout.dense(1, len(ids), row.device))
    if isinstance(model, DecoderOnly):
        with trace.watching(model.stack):
            return None, Read(ids, trace, model.hidden(row, trace=trace)[0])
    if isinstance(model, EncoderOnly):
        with trace.watching(model.stack):
            return None, Read(ids, trace, model.encode(row, trace=trace).states[0])
    assert isinstance(model, EncoderDecoder)  # stacks[0] is its encoder
    with trace.watching(model.encoder):
        memory = model.encode(row, trace=trace)
    written = _target(model, ids, target)
    beside = OneLayer(layer=min(layer, model.decoder.depth - 1))
    with beside.watching(model.decoder):
        h = model.hidden(torch.tensor([written], device=row.device), trace=beside, memory=memory)
    return Read(ids, trace, memory.states[0]), Read(written, beside, h[0])


def ids_of(model: Model, text: str, kind: Kind) -> list[int]:
    """The ids of a text, framed as the model expects; BadValue for none, and for more than are traced here."""
    if not text:
        raise BadValue("there is nothing to read: the text is empty")
    own = model.config.source_vocab_size if kind == "source" else None
    [ids] = encode_prompts(text, model.tokenizer, own or model.config.vocab_size, empty=kind == "prompt", kind=kind)
    check_length(model, ids)
    return list(ids)


def _target(model: EncoderDecoder, source: list[int], target: str) -> list[int]:
    """What the decoder reads: its start, and the target or what it writes itself."""
    tokenizer = model.tokenizer
    start = model.start if model.start is not None or tokenizer is None else tokenizer.eos_id
    first = 0 if start is None else start
    if target:
        return [first, *ids_of(model, target, "prompt")]
    written = generate(model, source=[source], max_new_tokens=WRITTEN)[0].ids
    return [first, *(i for i in written if i != first and i not in model.ends)]


def _answers(model: Model, read: Read) -> Answer:
    """What the head says: of the next token, of each token, or of the text."""
    head = getattr(model, "head", None)
    if isinstance(model, EncoderOnly):
        if isinstance(head, PooledHead):
            return {"answer": "vector", "candidates": []}
        memory = model.encode(torch.tensor([read.ids], device=read.output.device))
        logits = model.head(memory)[0].float()
        classes = isinstance(head, ClassHead | LabelHead)
        if logits.dim() == 1:
            return {"answer": "classes", "candidates": [candidates(model, logits, CANDIDATES, classes)]}
        return {"answer": "each", "candidates": [candidates(model, row, 3, classes) for row in logits]}
    logits = model.head(read.output[None, -1:])[0, -1].float()
    return {"answer": "next", "candidates": [candidates(model, logits, CANDIDATES)]}


def candidates(model: Model, logits: Float, top: int, classes: bool = False) -> list[dict[str, Any]]:
    """The most probable tokens, or classes."""
    p = logits.float().softmax(-1)
    best = p.topk(min(top, len(p))).indices.tolist()

    def name(i: int) -> str:
        return names(model, [i])[0] if not classes else str(i) if model.labels is None else model.labels[i]

    return [{"id": i, "token": name(i), "logit": float(logits[i]), "p": float(p[i])} for i in best]


def names(model: Model, ids: Sequence[int]) -> list[str]:
    """How tokens are shown: with marks for line breaks that every system's fonts have."""
    return [token_name(model, i).replace("\N{SYMBOL FOR LINE FEED}", "↵") for i in ids]


def _encodings(model: Model) -> list[str]:
    named = [e.name for e in model.encodings()]
    return [name for name in dict.fromkeys(named) if name != "none"] or ["none"]


def _norms(x: Float | Sequence[Float] | None) -> Float | None:
    """Lengths of vectors: (T,), or (L, T) of several."""
    if x is None:
        return None
    if isinstance(x, torch.Tensor):
        return x.float().norm(dim=-1).reshape(-1)
    return torch.stack([each.float().norm(dim=-1) for each in x])


__all__ = ["OneLayer", "candidates", "flow", "ids_of", "names", "vector"]
