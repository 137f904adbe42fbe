"""The task `spans`: find the keywords, names, operators, numbers, strings and comments of Python source.

Python's own tokenizer is the judge. Files are held out whole, and every character of a held-out file is judged once:
the model reads overlapping windows, of each only the middle half counts (so that every token is read with at least a
quarter of a window on either side, except at the ends of a file), and the labels of all middles together are read as
the spans of the file. So a string that runs across windows is one span, found only if both its ends are right and no
label between says otherwise. A window that begins inside a string is not told so.
"""

import hashlib
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from torch import nn
from tqdm import tqdm

from gnomon.data import Corpus, Document, Tokenizer
from gnomon.data.python_source import KINDS, python_spans
from gnomon.data.spans import (
    Span,
    SpanCounts,
    best_labels,
    count_spans,
    kinds_of,
    label_names,
    to_labels,
    to_spans,
)
from gnomon.errors import BadInput, BadValue
from gnomon.generate import evaluation_mode
from gnomon.models import EncoderOnly, Model, ModelConfig, build
from gnomon.models.inputs import pad_rows
from gnomon.tasks.kind import Kind
from gnomon.tasks.labelled import Labelled, check_encoder
from gnomon.train import Evaluation, Measure, TrainConfig
from gnomon.train.evaluation import from_losses
from gnomon.train.loss import IGNORE
from gnomon.train.measure import bootstrap
from gnomon.train.step import mixed_precision

Ints = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float32]]
AT_ONCE = 32  # windows read in one batch
SHOWN = 200  # characters of the sample


@dataclass(frozen=True)
class SpansKind(Kind):
    """Which files, and how much of them is held out."""

    name = "spans"
    about = "Find the keywords, names, operators, numbers, strings and comments of Python source."
    takes = "sources"
    default_tokenizer = "characters"
    default_model: ClassVar[dict[str, Any]] = {
        "architecture": "encoder-only",
        "causal": False,
        "vocab_size": 1024,
        "d_model": 96,
        "n_layers": 4,
        "n_heads": 4,
        "position": {"name": "rope", "base": 100.0},
        "init_std": 0.1,
    }
    default_train = TrainConfig(
        steps=2000,
        batch_size=16,
        length=128,
        lr=3e-3,
        warmup=100,
        eval_every=None,
        eval_windows=10_000,
        sample_every=None,
        save_every=500,
    )

    sources: tuple[str, ...] = ("stdlib",)
    held_out: float = 0.05

    @cached_property
    def parts(self) -> tuple[Corpus, Corpus]:
        """What is trained on and what is held out."""
        return self.corpus.split(self.held_out)

    @cached_property
    def corpus(self) -> Corpus:
        """All files."""
        return Corpus.open(self.sources)

    def texts(self) -> Iterable[str]:
        """The files that are trained on."""
        return self.parts[0].texts

    def task(self, tokenizer: Tokenizer, config: TrainConfig, quiet: bool = True) -> "Spans":
        """Windows of the files."""
        return Spans(*self.parts, tokenizer, config, quiet)

    def task_on(self, sources: tuple[str, ...], tokenizer: Tokenizer, config: TrainConfig, quiet: bool) -> "Spans":
        """Measured on other files."""
        files = Corpus.open(sources)
        return Spans(files, files, tokenizer, config, quiet)

    def new_model(self, config: ModelConfig) -> Model:
        """An encoder that labels tokens."""
        names = label_names(KINDS)
        model = build(replace(config, head="labels", n_classes=len(names)))
        model.labels = names
        return model

    def describe(self) -> str:
        """Files and bytes."""
        return self.corpus.describe()

    def next_step(self, folder: Path) -> str:
        """Let it label a line."""
        return f"Let it read: gnomon predict {shlex.quote(str(folder))} 'print(\"it is\", x)  # done'"

    def with_absolute_paths(self) -> Self:
        """The same files, found from any folder."""
        found = tuple(s if s in ("-", "stdlib") else str(Path(s).absolute()) for s in self.sources)
        return replace(self, sources=found)


class Source(NamedTuple):
    """A file as a model reads it, and what it is to find there."""

    text: str
    ids: Ints  # (N,)
    starts: Ints  # (N,) the character each token begins at
    labels: Ints  # (N,)
    spans: list[Span]


class Spans:
    """Labels of every token in windows of source files; a gnomon.train.Task."""

    name = "spans"

    def __init__(
        self, training: Corpus, held_out: Corpus, tokenizer: Tokenizer, config: TrainConfig, quiet: bool = True
    ) -> None:
        """Of the config, batch_size, length, seed, eval_windows and label_smoothing are read. Files that are not Python
        are left out; BadInput where none is left."""
        self.tokenizer, self.config = tokenizer, config
        self.training = list(read(training.documents, tokenizer, quiet))
        limit = config.eval_windows * (config.length - 2 * (config.length // 4))
        mixed_up = sorted(held_out.documents, key=lambda document: document.sha256)
        self.held_out = list(whole_files(read(mixed_up, tokenizer, True), limit))
        if not self.training or not self.held_out:
            raise BadInput(f"{training.name}: not enough Python source to train on and to hold out; give more files")
        self.ends = np.cumsum([len(source.ids) for source in self.training])

    @cached_property
    def fingerprint(self) -> str:
        """Of the training tokens and their labels."""
        seen = hashlib.sha256()
        for source in self.training:
            seen.update(source.ids.tobytes() + source.labels.tobytes())
        return seen.hexdigest()

    def check(self, model: Model, config: TrainConfig) -> None:
        """Raise BadValue for a model that cannot learn this."""
        check_encoder(model, self.config, config, "labels", self.tokenizer.vocab_size)
        if model.config.n_classes != len(label_names(KINDS)):
            raise BadValue(f"there are {len(label_names(KINDS))} labels, the model has {model.config.n_classes}")

    def batch(self, number: int) -> Labelled:
        """Windows drawn anywhere, in files as often as they are long."""
        rng = np.random.default_rng([self.config.seed, number])
        ids, labels = [], []
        for place in rng.integers(self.ends[-1], size=self.config.batch_size).tolist():
            source = self.training[int(np.searchsorted(self.ends, place, side="right"))]
            start = int(rng.integers(max(1, len(source.ids) - self.config.length + 1)))
            window = slice(start, start + self.config.length)
            ids.append(source.ids[window].tolist())
            labels.append(source.labels[window].tolist())
        rows, at = pad_rows(ids)
        return Labelled(rows, pad_rows(labels, IGNORE)[0], at, self.config.label_smoothing)

    def evaluate(self, model: nn.Module, dtype: torch.dtype = torch.float32) -> Evaluation:
        """Span F1: the mean over the kinds of span, and each. Intervals come from drawing files."""
        nats, found = [], []
        for source in self.held_out:
            scores = log_probabilities(model, source.ids, self.config.length, dtype)
            nats.append(-float(scores[np.arange(len(scores)), source.labels].sum(dtype=np.float64)))
            predicted = to_spans(best_labels(scores), source.text, source.starts, KINDS)
            found.append(count_spans(predicted, source.spans, KINDS))
        counts = np.array([len(source.ids) for source in self.held_out], dtype=np.float64)
        return from_losses(np.array(nats), counts, f1_measures(found))

    def samples(self, model: Model) -> list[str]:
        """The beginning of a held-out file, with what was found in it."""
        text = self.held_out[0].text[:SHOWN]
        return [" ".join(f"{text[s.start : s.end]}/{s.kind}" for s in find_spans(model, text, self.config.length))]


def f1_measures(found: Sequence[SpanCounts]) -> dict[str, Measure]:
    """Span F1 by name from what was found in each file: the macro mean first."""
    counts = np.array([(f.hits, f.predicted, f.gold) for f in found], dtype=np.float64)  # (files, 3, kinds)

    def mean_f1(kinds: slice) -> Measure:
        """Of how often each file is drawn: the counts add up before the F1 is taken."""
        return bootstrap(lambda times: float(SpanCounts(*np.tensordot(times, counts, 1)).f1[kinds].mean()), len(found))

    each = {f"F1 {kind}": mean_f1(slice(k, k + 1)) for k, kind in enumerate(KINDS)}
    return {"span F1": mean_f1(slice(None)), **each}


def read(documents: Iterable[Document], tokenizer: Tokenizer, quiet: bool) -> Iterator[Source]:
    """Python files as tokens with labels; what is not Python is left out."""
    for document in tqdm(documents, desc="labelling", unit=" files", leave=False, disable=quiet or None, delay=1):
        try:
            spans = python_spans(document.text)
        except BadInput:
            continue
        ids, starts = tokenize(document.text, tokenizer)
        yield Source(document.text, ids, starts, to_labels(spans, document.text, starts, KINDS), spans)


def whole_files(sources: Iterable[Source], limit: int) -> Iterator[Source]:
    """Whole files, until `limit` tokens are reached."""
    for source in sources:
        if limit <= 0:
            return
        limit -= len(source.ids)
        yield source


def tokenize(text: str, tokenizer: Tokenizer) -> tuple[Ints, Ints]:
    """(N,) token ids, and the character each begins at; a token that begins inside a character begins with it."""
    ids = np.array(tokenizer.encode(text), dtype=np.int64)
    if tokenizer.kind == "characters":
        return ids, np.arange(len(ids))
    ends_of_bytes = np.cumsum([len(c.encode()) for c in text])
    ends = np.cumsum(tokenizer.byte_lengths()[ids])
    return ids, np.searchsorted(ends_of_bytes, np.append(0, ends[:-1]), side="right")


def log_probabilities(model: nn.Module, ids: Ints, length: int, dtype: torch.dtype = torch.float32) -> Floats:
    """(N, C): what the model says of each token, from the window of at most `length` tokens that it is nearest the
    middle of."""
    n, quarter = len(ids), length // 4
    middle = max(1, length - 2 * quarter)
    places = [(start, min(max(start - quarter, 0), max(n - length, 0))) for start in range(0, n, middle)]
    device, parts = next(model.parameters()).device, []
    with evaluation_mode(model), torch.no_grad():
        for first in range(0, len(places), AT_ONCE):
            some = places[first : first + AT_ONCE]
            rows = torch.from_numpy(np.stack([ids[low : low + length] for _, low in some])).to(device)
            with mixed_precision(device, dtype):
                answers = model(rows).float().log_softmax(-1).cpu().numpy()
            parts += [answers[row, start - low :][: min(middle, n - start)] for row, (start, low) in enumerate(some)]
    return np.concatenate(parts)


def find_spans(model: Model, text: str, length: int = 128) -> list[Span]:
    """The spans that a trained model finds in a text, read in windows of `length` tokens. Raises BadValue for a model
    that labels no spans."""
    if not isinstance(model, EncoderOnly) or model.config.head != "labels" or model.labels is None:
        raise BadValue(f"this model finds no spans, it is {model.architecture} with a head of {model.config.head}")
    if model.tokenizer is None:
        raise BadValue("this model has no tokenizer, so it cannot read text")
    if not text:
        return []
    ids, starts = tokenize(text, model.tokenizer)
    before, _ = tokenize("\n", model.tokenizer)  # a text begins where a line begins, and not inside a string
    found = log_probabilities(model, np.concatenate([before, ids]), length)[len(before) :]
    return to_spans(best_labels(found), text, starts, kinds_of(model.labels))


__all__ = ["Source", "Spans", "SpansKind", "f1_measures", "find_spans", "log_probabilities", "tokenize"]
