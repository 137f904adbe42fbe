"""Translation: an encoder-decoder reads a source and writes a target.

The target is trained on as start, its tokens, end; start and end are both the tokenizer's end-of-text, as in
generation. It is shifted once, where all labels are (`next_token_labels`), and where it ends is known by its length,
so the end is a target whatever id the padding has.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from gnomon.checkpoints.native import unwrap
from gnomon.data import Tokenizer
from gnomon.errors import BadInput, BadValue
from gnomon.generate import evaluation_mode, generate
from gnomon.layout import Layout
from gnomon.models import EncoderDecoder, Model
from gnomon.shapes import Float, Int
from gnomon.train import Evaluation, Loss, Measure, TrainConfig
from gnomon.train.evaluation import from_losses
from gnomon.train.loss import cross_entropy, padding_of, row_losses, window_labels
from gnomon.train.step import mixed_precision
from gnomon.train.task import check_made_for

AT_ONCE = 256  # rows translated in one batch
SHOWN = 3  # rows shown as samples

Pair = tuple[str, str]


@dataclass(frozen=True)
class Sentences:
    """Token ids of different lengths, padded on the right; `at` says where they end."""

    ids: Int  # (B, T)
    at: Layout

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]], fill: int) -> "Sentences":
        """Rows of ids; `fill` stands where a row has none."""
        lengths = torch.tensor([len(row) for row in rows])
        T = int(lengths.max())
        ids = torch.tensor([[*row, *[fill] * (T - len(row))] for row in rows])
        return cls(ids, Layout.padded(torch.arange(T) < lengths[:, None]))

    def rows(self, index: Int) -> "Sentences":
        """The rows `index` (B',)."""
        return Sentences(self.ids[index], self.at.rows(index))

    def to(self, device: torch.device) -> "Sentences":
        """The same on another device."""
        return Sentences(self.ids.to(device), self.at.to(device))


@dataclass(frozen=True)
class Translations:
    """A batch of sources and what is to be written about them."""

    source: Sentences
    target: Sentences  # (B, T + 1): start, tokens, end
    targets: int
    smoothing: float = 0.0

    def pieces(self, n: int) -> Iterator["Translations"]:
        """The rows in `n` runs, or in as many as there are rows."""
        for index in torch.arange(len(self.source.ids), device=self.source.ids.device).tensor_split(
            min(n, len(self.source.ids))
        ):
            target = self.target.rows(index)
            yield Translations(self.source.rows(index), target, _targets(target), self.smoothing)

    def to(self, device: torch.device) -> "Translations":
        """The same batch on another device."""
        return Translations(self.source.to(device), self.target.to(device), self.targets, self.smoothing)

    def logits(self, model: nn.Module) -> Float:
        """(B, T, V): what follows each token but the last."""
        read = slice(None, -1)
        return model(self.source.ids, self.target.ids[:, read], self.source.at, self.target.at.tokens(read))

    def loss(self, model: nn.Module) -> Loss:
        """What the model pays for the targets."""
        padding = padding_of(model) if self.smoothing else None
        return cross_entropy(self.logits(model), self.labels(), self.smoothing, padding)

    def labels(self) -> Int:
        """(B, T)."""
        return window_labels(self.target.ids, self.target.at)


def _targets(target: Sentences) -> int:
    return int(target.at.real.sum()) - len(target.ids)  # all tokens of a row but its start


class Translation(ABC):
    """Base of the tasks of translation: a gnomon.train.Task that lacks its data and its score."""

    name: str

    def __init__(self, tokenizer: Tokenizer, config: TrainConfig) -> None:
        """Of the config, batch_size, length, seed, eval_windows and label_smoothing are read."""
        if tokenizer.eos_id is None:
            raise BadValue("a translation ends with end-of-text, which this tokenizer does not have")
        self.tokenizer, self.config, self.end = tokenizer, config, tokenizer.eos_id

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Of the training data."""

    @abstractmethod
    def draw(self, number: int) -> Sequence[Pair]:
        """The pairs of step `number`."""

    @abstractmethod
    def held_out(self) -> Mapping[str, Sequence[Pair]]:
        """Pairs that are never trained on, by the name of their set."""

    @abstractmethod
    def score(self, name: str, answers: Sequence[str], references: Sequence[str]) -> Mapping[str, Measure]:
        """How good the translations of one held-out set are."""

    def check(self, model: Model, config: TrainConfig) -> None:
        """Raise BadValue for a model that cannot learn this."""
        check_made_for(self.config, config)
        if not isinstance(model, EncoderDecoder):
            raise BadValue(
                f"a translation is read by an encoder and written by a decoder; this model is {model.architecture}: "
                "choose an encoder-decoder"
            )
        known = model.config.vocab_size
        if model.config.source_vocab_size is not None or self.tokenizer.vocab_size > known:
            raise BadValue(
                f"source and target share one vocabulary of {self.tokenizer.vocab_size} tokens; the model knows {known}"
                + (", and has another for the source" if model.config.source_vocab_size is not None else "")
            )
        longest = max(self.longest(pairs) for pairs in self.held_out().values())
        if longest > config.length:
            raise BadValue(
                f"rows have at most length={config.length} tokens, but one that is held out has {longest}: "
                f"--length {longest}"
            )
        model.check(Layout.dense(1, config.length, next(model.parameters()).device))

    def longest(self, pairs: Sequence[Pair]) -> int:
        """Tokens of the longest source or target, its end included."""
        return max(len(ids) for side in zip(*pairs, strict=True) for ids in self.tokenizer.encode_batch(side)) + 1

    def made(self, pairs: Sequence[Pair]) -> Translations:
        """A batch of these pairs."""
        sources, targets = (self.tokenizer.encode_batch(side) for side in zip(*pairs, strict=True))
        target = Sentences.of([[self.end, *ids, self.end] for ids in targets], self.end)
        return Translations(Sentences.of(sources, self.end), target, _targets(target), self.config.label_smoothing)

    def batch(self, number: int) -> Translations:
        """The batch of step `number`."""
        return self.made(self.draw(number))

    def evaluate(self, model: nn.Module, dtype: torch.dtype = torch.float32) -> Evaluation:
        """Loss, and the score of the translations that the model writes by itself, greedily."""
        nats, targets = [], []
        scores: dict[str, Measure] = {}
        for name, every in self.held_out().items():
            pairs = sample_evenly(every, self.config.eval_windows)
            loss = self.losses(model, pairs, dtype)
            nats.append(loss.total.double().cpu().numpy())
            targets.append(loss.count.double().cpu().numpy())
            answers = self.translate(unwrap(model), [source for source, _ in pairs])
            scores.update(self.score(name, answers, [target for _, target in pairs]))
        return from_losses(np.concatenate(nats), np.concatenate(targets), scores)

    @torch.no_grad()
    def losses(self, model: nn.Module, pairs: Sequence[Pair], dtype: torch.dtype) -> Loss:
        """The loss of each pair, (n,)."""
        device, found = next(model.parameters()).device, []
        with evaluation_mode(model):
            for start in range(0, len(pairs), AT_ONCE):
                batch = self.made(pairs[start : start + AT_ONCE]).to(device)
                with mixed_precision(device, dtype):
                    found.append(row_losses(batch.logits(model), batch.labels()))
        return Loss(torch.cat([loss.total for loss in found]), torch.cat([loss.count for loss in found]))

    def translate(self, model: Model, sources: Sequence[str]) -> list[str]:
        """What the model writes about each source, greedily."""
        if not isinstance(model, EncoderDecoder):
            raise BadValue(f"a translation needs an encoder-decoder, not a model that is {model.architecture}")
        found = []
        for start in range(0, len(sources), AT_ONCE):
            ids = self.tokenizer.encode_batch(sources[start : start + AT_ONCE])
            rows = generate(model, source=ids, max_new_tokens=self.config.length)
            found += [self.tokenizer.decode(row.ids) for row in rows]
        return found

    def samples(self, model: Model) -> list[str]:
        """A few held-out sources and what the model makes of them."""
        some = [pair for pairs in self.held_out().values() for pair in sample_evenly(pairs, SHOWN)]
        answers = self.translate(model, [source for source, _ in some])
        return [f"{source} -> {answer}" for (source, _), answer in zip(some, answers, strict=True)]


def sample_evenly(items: Sequence[Pair], limit: int) -> Sequence[Pair]:
    """At most `limit` of the items, spread evenly; BadInput where there are none."""
    if not items:
        raise BadInput("nothing is held out to measure the model on")
    return items if len(items) <= limit else [items[i * len(items) // limit] for i in range(limit)]


__all__ = ["Pair", "Sentences", "Translation", "Translations", "sample_evenly"]
