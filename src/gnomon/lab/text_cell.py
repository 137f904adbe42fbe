"""A small language model as a cell: trained on windows of this machine's text, measured on what was held out.

The windows lie one after another without overlap, and all lengths are read from the same stretches of text (less what
is left over at the end of a stretch): the protocol of most published tables, in which a longer window gives its targets
more context on average (see protocols.py for the others).
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gnomon.data import Corpus, LMBatches, Tokenizer, TokenStore, long_documents
from gnomon.data.store import Ints
from gnomon.errors import BadInput, BadValue
from gnomon.lab.cell import Cell, Result, Tell
from gnomon.lab.drawing import draw_model
from gnomon.lab.protocols import has_positions, nats_per_token
from gnomon.lab.settings import LabSettings, Recipe, Size, parse_list
from gnomon.models import DecoderOnly, extend
from gnomon.train import Windows, adamw, training_step, warmup_cosine

HELD_OUT = 0.05
VOCABULARY_FROM = 150  # training documents that the vocabulary is learned from
AS_TRAINED = "none"  #: the method that changes nothing


@dataclass(frozen=True)
class TextCell(Cell):
    """An encoding, a seed, and where it is measured: at multiples of the training length, and for RoPE under methods
    that extend it without training.

    text, sha256   a source of text, and its fingerprint; `text_cell` fills that in
    methods        "none" reads on as trained; linear, ntk, dynamic, yarn, llama3: each with the factor of its length
    tokens         of held-out text that are read at each length
    """

    position: str
    seed: int = 0
    length: int = 64
    factors: tuple[int, ...] = (1, 2, 4, 8)
    methods: tuple[str, ...] = (AS_TRAINED,)
    tokens: int = 4096
    text: str = "stdlib"
    sha256: str = ""
    vocab_size: int = 512
    model: Size = field(default_factory=Size)
    train: Recipe = field(default_factory=Recipe)

    @property
    def label(self) -> str:
        """Encoding and seed."""
        return f"text {self.position} {self.seed}"

    @property
    def work(self) -> float:
        """In tokens."""
        return float(self.train.steps * self.train.batch_size * self.length)

    def code(self) -> Iterable[type]:
        """The encodings."""
        return [spec.cls for spec in parse_list(self.position)]

    def run(self, folder: Path, tell: Tell) -> Result:
        """Train and measure."""
        corpus = Corpus.open(self.text)
        if self.sha256 and corpus.sha256 != self.sha256:
            raise BadInput(f"the text {self.text} has changed since this experiment was set up: start it again")
        training, held_out = corpus.split(HELD_OUT)
        tokenizer = Tokenizer.bpe([d.text for d in training.documents[:VOCABULARY_FROM]], self.vocab_size)
        with torch.random.fork_rng(devices=[]):
            model = self.build(tokenizer)
            began = time.process_time()
            loss = self.fit(model, TokenStore.open(training, tokenizer), tell)
            spent = time.process_time() - began
        rows = windows(TokenStore.open(held_out, tokenizer), self.length * max(self.factors), self.tokens)
        found = [self.measured(model, rows, method, factor) for method in self.methods for factor in self.factors]
        return {
            "loss": loss,
            "unigram": unigram(rows),
            "cpu_seconds": round(spent, 2),
            "measured": found,
            "parameters": sum(p.numel() for p in model.parameters()),
        }

    def build(self, tokenizer: Tokenizer) -> DecoderOnly:
        """The model before training."""
        specs = LabSettings(positions=(self.position,), train_length=self.length).fitted(self.position)
        return draw_model(tokenizer.vocab_size, specs, self.seed, **self.model.settings())

    def fit(self, model: DecoderOnly, store: TokenStore, tell: Tell) -> float:
        """Train it; returns the last loss in nats per token."""
        r, loss = self.train, float("nan")
        optimizer = adamw(model, r.lr, r.weight_decay)
        batches = LMBatches(store, r.batch_size, self.length, self.seed)
        model.train()
        for step in range(r.steps):
            rate = warmup_cosine(step, r.lr, r.warmup, r.steps, r.floor * r.lr)
            paid = training_step(model, optimizer, Windows(torch.from_numpy(batches.batch(step))), rate, r.clip)
            if (step + 1) % 50 == 0 or step + 1 == r.steps:
                loss = paid.mean.item()
                tell((step + 1) / r.steps, f"loss {loss:.3f}")
        model.eval()
        return loss

    def measured(self, model: DecoderOnly, rows: Ints, method: str, factor: int) -> dict[str, Any]:
        """Perplexity of one method in windows of one length; None where the encoding has no such positions."""
        n = factor * self.length
        reader = extended(model, self.length, n, method)
        if not has_positions(reader, n):
            return {"method": method, "length": n, "perplexity": None}
        cut = np.concatenate([rows[:, i : i + n + 1] for i in range(0, rows.shape[1] - n, n)])
        return {"method": method, "length": n, "perplexity": exp(float(nats_per_token(reader, cut, n).mean()))}


def extended(model: DecoderOnly, trained: int, to: int, method: str) -> DecoderOnly:
    """The model under a method that lets it read further; itself where there is nothing to extend."""
    if method == AS_TRAINED or to <= trained:
        return model
    changed = extend(model, to, method, trained=trained).model
    assert isinstance(changed, DecoderOnly)
    return changed.eval()


def windows(store: TokenStore, longest: int, tokens: int) -> Ints:
    """(n, longest + 1) ids: stretches of long documents, one after another, about `tokens` in all, evenly spread."""
    chosen = long_documents(store, longest + 1)
    found = [
        document[i : i + longest + 1]
        for document in (store.document(index) for index in chosen.tolist())
        for i in range(0, len(document) - longest, longest)
    ]
    if not found:
        raise BadInput(f"no held-out document has the {longest + 1} tokens that this needs: give longer ones")
    step = max(1, len(found) * longest // max(tokens, longest))
    return np.stack(found[::step]).astype(np.int64)


def unigram(rows: Ints) -> float:
    """Perplexity of the best guess that knows nothing but how often each token comes: what a model must beat."""
    counts = np.unique(rows[:, 1:], return_counts=True)[1]
    p = counts / counts.sum()
    return exp(float(-(p * np.log(p)).sum()))


@cache
def _fingerprint(text: str) -> str:
    return Corpus.open(text).sha256


def text_cell(position: str, **settings: Any) -> TextCell:
    """A cell with the fingerprint of its text."""
    cell = TextCell(position, **settings)
    if cell.length < 4 or not cell.factors or min(cell.factors) < 1:
        raise BadValue(
            f"a length of at least 4 and factors of at least 1 are needed; got {cell.length}, {cell.factors}"
        )
    return replace(cell, sha256=_fingerprint(cell.text))


__all__ = ["AS_TRAINED", "TextCell", "extended", "text_cell", "unigram", "windows"]
