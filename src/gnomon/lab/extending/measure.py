"""How a RoPE model reads past its training length under one method: loss on fixed targets, cost at short length.

    targets     the last quarter of a training length of each text, the same for every method and context
    context     a window of n tokens that ends with the targets; each target has at least three quarters of the shortest
    crop        the model as trained, given its training length and nothing else: what any method has to beat
    short       what a method costs where none was needed: windows within the training length

All losses are nats per token of the same texts, so differences between them are paired by text.
"""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch

from gnomon.data import Corpus, LMBatches, TokenStore
from gnomon.data.store import Ints
from gnomon.errors import BadInput, BadValue
from gnomon.generate import evaluation_mode
from gnomon.lab.by_position import beginnings
from gnomon.lab.protocols import Floats, nats_per_token
from gnomon.models import DecoderOnly, Model
from gnomon.models.context_extension import ROPE_METHODS
from gnomon.train import Windows, adamw, training_step

AS_TRAINED = "none"  #: the method that changes nothing
METHODS = ("yarn", "dynamic", "ntk", "llama3", "linear")
SHORTEST = 8  # tokens of a training length that can be measured
SHARES = (0.05, 0.2, 0.5)  # of a text, held out; by the first, `gnomon train` holds out the same documents
STEPWISE = 2  # tokens read one after another, beside all at once

Row = dict[str, Any]


@dataclass(frozen=True)
class Texts:
    """(n, longest + 1) ids to measure on, whose last `targets` tokens are asked."""

    rows: Ints
    targets: int

    def loss(self, model: DecoderOnly, context: int) -> Floats:
        """(n,) nats per target of each text, given windows of `context` tokens."""
        return nats_per_token(model, self.rows[:, -(context + 1) :], min(self.targets, context)).mean(1)


def reader(model: Model, trained: int | None) -> tuple[DecoderOnly, int]:
    """The model as one that can be extended, and its training length; BadValue where it is none."""
    if not isinstance(model, DecoderOnly) or not model.config.causal:
        raise BadValue("only a causal decoder-only model is extended here: a language model with RoPE")
    if not any(spec.name == "rope" for spec in model.config.specs):
        found = " and ".join(sorted({spec.name for spec in model.config.specs}))
        raise BadValue(f"the position of this model is {found}; these methods scale rope: see gnomon extend")
    length = model.config.max_positions if trained is None else trained
    if length is None:
        raise BadValue("the training length of this model is unknown: pass trained=..., in tokens (--trained)")
    if length < SHORTEST:
        raise BadValue(f"a training length of at least {SHORTEST} tokens is needed, got {length}")
    return model, length


def texts(model: DecoderOnly, source: Any, trained: int, longest: int, count: int) -> tuple[Texts, Corpus]:
    """Up to `count` held-out texts of more than `longest` tokens, read by the model's own tokenizer, and the rest of
    the corpus, which holds none of them. The share held out is the smallest of SHARES that has enough such texts."""
    if model.tokenizer is None:
        raise BadInput("this model has no tokenizer, so there is no text to measure it on: load a checkpoint with one")
    corpus = source if isinstance(source, Corpus) else Corpus.open(source)
    for share in SHARES:
        training, held_out = corpus.split(share)
        try:
            rows = beginnings(held_out, model.tokenizer, longest, count)
        except BadInput:
            if share == SHARES[-1]:
                raise
            continue
        if len(rows) == count or share == SHARES[-1]:
            break
    return Texts(rows, max(1, trained // 4)), training


def extended(model: DecoderOnly, trained: int, to: int, method: str) -> DecoderOnly:
    """The model under a method that lets it read `to` tokens; itself where nothing is to be changed."""
    from gnomon.models import extend

    if method == AS_TRAINED or to <= trained:
        return model
    if method not in ROPE_METHODS:
        raise BadValue(f"the methods are {', '.join((AS_TRAINED, *METHODS))}; got {method!r}")
    changed = extend(model, to, method, trained=trained).model
    assert isinstance(changed, DecoderOnly)
    return changed.eval()


def tuned(model: DecoderOnly, text: Corpus, length: int, steps: int, lr: float = 3e-4, seed: int = 0) -> DecoderOnly:
    """A copy of the model after a few steps on windows of `length` tokens of a text, one a step."""
    tokenizer, model = model.tokenizer, deepcopy(model)
    assert tokenizer is not None
    batches = LMBatches(TokenStore.open(text, tokenizer), 1, length, seed)
    optimizer = adamw(model, lr)
    device = next(model.parameters()).device
    model.train()
    for step in range(steps):
        ids = torch.from_numpy(batches.batch(step)).to(device)
        training_step(model, optimizer, Windows(ids), lr * min(1.0, (step + 1) / 10), 1.0)
    return model.eval()


@torch.no_grad()
def stepwise(model: DecoderOnly, row: Ints, context: int) -> float:
    """The largest difference between log-probabilities after the last tokens read one after another with a cache, and
    after reading the text up to each of them at once: 0 but for rounding, whatever the method. (Under dynamic scaling a
    text of n tokens has the table of n, so one pass over a longer text is another reading.)"""
    device = next(model.parameters()).device
    ids = torch.from_numpy(row[None, -context:]).to(device)
    with evaluation_mode(model):
        cache, apart, whole = model.cache(), [], []
        model.hidden(ids[:, :-STEPWISE], cache=cache)
        for i in range(context - STEPWISE, context):
            apart.append(model.head(model.hidden(ids[:, i : i + 1], cache=cache)[:, -1]).log_softmax(-1))
            whole.append(model.head(model.hidden(ids[:, : i + 1])[:, -1]).log_softmax(-1))
    return float((torch.cat(whole) - torch.cat(apart)).abs().max())


def paired(values: Floats, base: Floats) -> tuple[float, float, float]:
    """The mean difference of two losses over texts, and the least and the largest of single texts."""
    difference = values - base
    return float(difference.mean()), float(difference.min()), float(difference.max())


def operations(model: DecoderOnly, n: int) -> float:
    """Of reading n tokens at once, about: two for each weight and token, and the scores of every layer."""
    weights = sum(p.numel() for p in model.parameters())
    return 2.0 * weights * n + 2.0 * model.config.n_layers * model.config.d_model * float(n) ** 2


def contexts_up_to(trained: int, to: int) -> list[int]:
    """Half the training length, the training length, twice that and so on, and `to`."""
    found = [trained // 2, trained]
    while found[-1] * 2 < to:
        found.append(found[-1] * 2)
    return [*found, to] if found[-1] != to else found


__all__ = [
    "AS_TRAINED",
    "METHODS",
    "Row",
    "Texts",
    "contexts_up_to",
    "extended",
    "operations",
    "paired",
    "reader",
    "stepwise",
    "texts",
    "tuned",
]
