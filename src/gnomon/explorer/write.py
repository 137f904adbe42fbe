"""The questions of generation: `write` tells each token as it is chosen, `beams` the whole tree of a search."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import torch

from gnomon.errors import BadValue, unknown
from gnomon.explorer.flow import names
from gnomon.explorer.questions import Answer, question, told
from gnomon.generate import Beam, Constraints, Distribution, Greedy, LanguageModel, Sample, generate
from gnomon.generate.loop import Request, begin, ends_for
from gnomon.models import EncoderDecoder, Model
from gnomon.shapes import Float, Int

Strategy = Literal["greedy", "sample"]
SHOWN = 16  # candidates of a step
MOST = 256  # tokens that are written
WIDEST = 16  # beams


@dataclass
class Watched:
    """A strategy that remembers what it chose from: (B, V) before and after it reshaped the logits."""

    inner: Distribution
    before: Float = field(default_factory=lambda: torch.zeros(1, 1))
    after: Float = field(default_factory=lambda: torch.zeros(1, 1))

    def choose(self, logits: Float, rngs: Sequence[torch.Generator]) -> Int:
        """The inner strategy's choice."""
        self.before, self.after = logits.log_softmax(-1), self.inner.process(logits).log_softmax(-1)
        return self.inner.choose(logits, rngs)


@told
def write(
    model: Model,
    text: str,
    strategy: Strategy = "greedy",
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    max_new_tokens: int = 32,
    seed: int = 0,
) -> Iterator[Answer]:
    """One event a token: it, and the candidates with their probabilities before and after the strategy reshaped them.
    0 of top_k and min_p, and 1 of top_p, leave them out. An encoder-decoder reads the text as its source."""
    writer = _writer(model, max_new_tokens)
    if strategy not in get_args(Strategy):
        raise unknown("strategy", strategy, get_args(Strategy))
    inner: Distribution = Greedy()
    if strategy == "sample":
        inner = Sample(temperature, top_k or None, None if top_p == 1 else top_p, min_p or None)
    watched = Watched(inner)
    prompts, source = (None, [text]) if isinstance(model, EncoderDecoder) else ([text], None)
    ends = ends_for(writer, (), (), 0, max_new_tokens)
    _, tokens = begin(writer, Request(prompts, source, watched, seed, ends, Constraints(), 0, "growing"))
    for token in tokens:
        yield {
            "id": token.id,
            "token": names(model, [token.id])[0],
            "piece": token.piece,
            "end": token.finish_reason,
            **_candidates(model, watched, token.id),
        }


@question
def beams(model: Model, text: str, width: int = 4, max_new_tokens: int = 12, length_penalty: float = 1.0) -> Answer:
    """Everything that a beam search looked into: nodes in the order they were written, and the results."""
    writer = _writer(model, max_new_tokens)
    if not 1 <= width <= WIDEST:
        raise BadValue(f"the explorer's beams are 1 to {WIDEST} wide, got {width}")
    strategy = Beam(width=width, length_penalty=length_penalty, n_best=width)
    prompts, source = (None, [text]) if isinstance(model, EncoderDecoder) else ([text], None)
    [best] = generate(writer, prompts, source=source, strategy=strategy, max_new_tokens=max_new_tokens)
    assert best.tree is not None
    nodes = [
        {
            "parent": n.parent,
            "token": names(model, [n.token])[0],
            "logprob": n.logprob,
            "score": n.score,
            "end": n.end,
            "place": n.place,
        }
        for n in best.tree.nodes
    ]
    results = [{"text": g.text, "score": g.score, "end": g.finish_reason} for g in (best, *best.alternatives)]
    return {"nodes": nodes, "results": results}


def _writer(model: Model, max_new_tokens: int) -> Any:
    if not isinstance(model, LanguageModel) or not model.config.causal:
        raise BadValue(f"this model is {model.architecture}: it reads both sides, and writes no text")
    if not 1 <= max_new_tokens <= MOST:
        raise BadValue(f"the explorer writes 1 to {MOST} tokens, got {max_new_tokens}")
    return model


def _candidates(model: Model, watched: Watched, chosen: int) -> Answer:
    """The most probable tokens to the model, and the chosen one, with both of their probabilities."""
    before, after = watched.before[0].exp(), watched.after[0].exp()
    best = before.topk(min(SHOWN, len(before))).indices.tolist()
    ids = best if chosen in best else [*best[:-1], chosen]
    kept = int((after > 0).sum())
    rows = [{"id": i, "token": names(model, [i])[0], "before": float(before[i]), "after": float(after[i])} for i in ids]
    return {"candidates": rows, "kept": kept, "vocabulary": len(before)}


__all__ = ["beams", "write"]
