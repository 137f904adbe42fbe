"""The task `classes`: which class a text belongs to, learned from a table of text and label.

The example that needs no file, `stdlib`, asks which package of Python's standard library a function comes from: the 20
packages with the most functions of at least three lines. Decorators and docstrings are taken away, for they often name
the package; names in the code stay. A function that occurs twice is kept once, one that occurs in two packages not at
all. A share of each class is held out function by function, so functions of one file may be on either side.
"""

import hashlib
import json
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import nn

from gnomon.data import Corpus, Tokenizer
from gnomon.data.bag_of_words import BagOfWords
from gnomon.data.python_source import python_functions
from gnomon.data.table import Example, drop_duplicates, read_table, split_examples
from gnomon.errors import BadInput, BadValue
from gnomon.generate import evaluation_mode
from gnomon.glossary import message, numeral
from gnomon.models import EncoderOnly, Model, ModelConfig, build
from gnomon.models.inputs import pad_rows
from gnomon.tasks.kind import Kind
from gnomon.tasks.labelled import Labelled, check_encoder
from gnomon.train import Evaluation, Measure, TrainConfig
from gnomon.train.evaluation import from_losses
from gnomon.train.measure import bootstrap, share
from gnomon.train.step import mixed_precision

Ints = np.ndarray[Any, np.dtype[np.int64]]
PACKAGES = 20  # of the example
LINES = 3  # a function has at least
AT_ONCE = 64  # texts read in one batch
SHOWN = 5  # texts shown as samples
LETTERS = 60  # of each


@dataclass(frozen=True)
class ClassesKind(Kind):
    """Which tables, and how much of each class is held out."""

    name = "classes"
    about = "Tell the class of a text, from a TSV, CSV or JSONL table with the columns text and label."
    takes = "sources"
    default_model: ClassVar[dict[str, Any]] = {
        "architecture": "encoder-only",
        "causal": False,
        "vocab_size": 2048,
        "d_model": 96,
        "n_layers": 2,
        "n_heads": 4,
        "position": "rope",
        "init_std": 0.1,
        "pooling": "mean",
        "dropout": 0.2,
    }
    default_train = TrainConfig(
        steps=900,
        batch_size=32,
        length=128,
        lr=2e-3,
        warmup=100,
        eval_every=None,
        eval_windows=10_000,
        sample_every=None,
        save_every=300,
    )

    sources: tuple[str, ...] = ("stdlib",)
    held_out: float = 0.2

    def __post_init__(self) -> None:
        if not 0 < self.held_out < 1:
            raise BadValue(f"held_out is a share of each class, between 0 and 1; got {self.held_out}")

    @cached_property
    def parts(self) -> tuple[list[Example], list[Example]]:
        """What is trained on and what is held out."""
        return split_examples(self.examples, self.held_out)

    @cached_property
    def examples(self) -> list[Example]:
        """All texts with their labels, each text once."""
        read = [
            e for source in self.sources for e in (stdlib_functions() if source == "stdlib" else read_table(source))
        ]
        found = drop_duplicates(read)
        if len({label for _, label in found}) < 2:
            only = f"all texts have the label {found[0].label!r}" if found else "no text has one label alone"
            raise BadInput(
                f"{', '.join(self.sources)}: {only}, so there is nothing to tell apart: give two classes or more"
            )
        return found

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes in alphabetical order."""
        return tuple(sorted({label for _, label in self.examples}))

    def texts(self) -> Iterable[str]:
        """The texts that are trained on."""
        return [text for text, _ in self.parts[0]]

    def task(self, tokenizer: Tokenizer, config: TrainConfig, quiet: bool = True) -> "Classes":
        """The classification of these texts."""
        return Classes(*self.parts, tokenizer, config)

    def task_on(self, sources: tuple[str, ...], tokenizer: Tokenizer, config: TrainConfig, quiet: bool) -> "Classes":
        """Measured on another table with the same classes."""
        return Classes(self.parts[0], replace(self, sources=sources).examples, tokenizer, config)

    def new_model(self, config: ModelConfig) -> Model:
        """An encoder with these classes."""
        model = build(replace(config, head="classes", n_classes=len(self.labels)))
        model.labels = self.labels
        return model

    def describe(self) -> str:
        """Texts and classes."""
        sources = ", ".join(self.sources)
        return message("data", "classes", sources=sources, texts=len(self.examples), classes=len(self.labels))

    def next_step(self, folder: Path) -> str:
        """Ask it."""
        text = self.parts[1][0].text if self.sources != ("stdlib",) else "async def wait(self): await self._event"
        return f"Ask it: gnomon predict {shlex.quote(str(folder))} {shlex.quote(text.splitlines()[0][:LETTERS])}"

    def with_absolute_paths(self) -> Self:
        """The same tables, found from any folder."""
        return replace(self, sources=tuple(s if s == "stdlib" else str(Path(s).absolute()) for s in self.sources))


def stdlib_functions() -> list[Example]:
    """The functions of this Python's standard library with the package each is from."""
    found = []
    for document in Corpus.open("stdlib").documents:
        _, package, *inside = document.name.split("/")
        if inside:
            found += [
                Example(text, package) for text in python_functions(document.text) if text.count("\n") >= LINES - 1
            ]
    found = drop_duplicates(found)
    kept = {label for label, _ in Counter(label for _, label in sorted(found)).most_common(PACKAGES)}
    return [example for example in found if example.label in kept]


class Classes:
    """Texts and their classes; a gnomon.train.Task. A text that is longer than a row is read from its beginning."""

    name = "classes"

    def __init__(
        self, training: Sequence[Example], held_out: Sequence[Example], tokenizer: Tokenizer, config: TrainConfig
    ) -> None:
        """Of the config, batch_size, length, seed, eval_windows and label_smoothing are read."""
        self.training, self.held_out, self.tokenizer, self.config = training, held_out, tokenizer, config
        self.labels = tuple(sorted({label for _, label in training}))
        if strange := sorted({label for _, label in held_out} - set(self.labels)):
            raise BadInput(f"nothing was trained on of the classes {', '.join(strange)}")
        self.rows = [row[: config.length] for row in tokenizer.encode_batch([text for text, _ in training])]
        if any(not row for row in self.rows):
            raise BadInput("a text has no tokens: leave empty texts out")

    @cached_property
    def fingerprint(self) -> str:
        """Of the training texts and labels."""
        return hashlib.sha256(json.dumps(self.training).encode()).hexdigest()

    def check(self, model: Model, config: TrainConfig) -> None:
        """Raise BadValue for a model that cannot learn this."""
        check_encoder(model, self.config, config, "classes", self.tokenizer.vocab_size)
        if model.labels != self.labels:
            raise BadValue(f"the classes are {', '.join(self.labels)}; the model has {model.labels}")

    def batch(self, number: int) -> Labelled:
        """Texts in shuffled order, each once before any comes again."""
        n, B = len(self.rows), self.config.batch_size
        drawn = [int(self._order(place // n)[place % n]) for place in range(number * B, (number + 1) * B)]
        ids, at = pad_rows([self.rows[i] for i in drawn])
        labels = torch.tensor([[self.labels.index(self.training[i].label)] for i in drawn])
        return Labelled(ids, labels, at, self.config.label_smoothing)

    def _order(self, epoch: int) -> Ints:
        return np.random.default_rng([self.config.seed, epoch]).permutation(len(self.rows))

    def evaluate(self, model: nn.Module, dtype: torch.dtype = torch.float32) -> Evaluation:
        """Accuracy and macro F1, beside those of a bag of words and of always naming the most frequent class."""
        some = self.held_out[:: max(1, -(-len(self.held_out) // self.config.eval_windows))]
        there = np.array([self.labels.index(label) for _, label in some])
        texts = [text for text, _ in some]
        scores = class_log_probabilities(model, self.tokenizer, texts, self.config.length, dtype)
        bag = BagOfWords(self.training)
        guessed = np.array([self.labels.index(bag.predict(text)) for text in texts])
        most = Counter(label for _, label in self.training).most_common(1)[0][0]
        return from_losses(
            -scores[np.arange(len(some)), there],
            np.ones(len(some)),
            {
                **class_measures("", scores.argmax(1), there, len(self.labels)),
                **class_measures(" bag of words", guessed, there, len(self.labels)),
                **class_measures(" majority", np.full(len(some), self.labels.index(most)), there, len(self.labels)),
            },
        )

    def samples(self, model: Model) -> list[str]:
        """A few held-out texts, what they are and what the model says."""
        lines = []
        for text, label in self.held_out[:: max(1, len(self.held_out) // SHOWN)][:SHOWN]:
            predicted, probability = classify(model, text, self.config.length)[0]
            lines.append(f"{label}: {' '.join(text.split())[:LETTERS]} -> {predicted} ({numeral(probability, '.0%')})")
        return lines


def class_measures(name: str, predicted: Ints, gold: Ints, n: int) -> dict[str, Measure]:
    """Accuracy and macro F1 of classes (N,) predicted, against the classes there are."""
    hit = predicted == gold
    classes = np.arange(n)
    by_class = np.stack([(hit & (gold == c), predicted == c, gold == c) for c in classes]).astype(
        np.float64
    )  # (C, 3, N)

    def macro(times: Any) -> float:
        hits, claimed, real = (by_class @ times).T
        counted = real > 0  # a class that was not drawn has no F1
        return float((2 * hits / np.maximum(claimed + real, 1))[counted].mean())

    return {
        f"accuracy{name}": share(int(hit.sum()), len(hit)),
        f"macro F1{name}": bootstrap(macro, len(hit)),
    }


def class_log_probabilities(
    model: nn.Module, tokenizer: Tokenizer, texts: Sequence[str], length: int, dtype: torch.dtype = torch.float32
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """(N, C): of each class for each text, read up to `length` tokens."""
    rows = [row[:length] for row in tokenizer.encode_batch(texts)]
    device, parts = next(model.parameters()).device, []
    with evaluation_mode(model), torch.no_grad():
        for first in range(0, len(rows), AT_ONCE):
            ids, at = pad_rows(rows[first : first + AT_ONCE])
            with mixed_precision(device, dtype):
                answers = model(ids.to(device), None if at is None else at.to(device))
            parts.append(answers.double().log_softmax(-1).cpu().numpy())
    return np.concatenate(parts)


def classify(model: Model, text: str, length: int = 128) -> list[tuple[str, float]]:
    """Every label with its probability, the most probable first. Raises BadValue for a model that tells no classes."""
    if not isinstance(model, EncoderOnly) or model.config.head != "classes" or model.labels is None:
        raise BadValue(f"this model tells no classes, it is {model.architecture} with a head of {model.config.head}")
    if model.tokenizer is None:
        raise BadValue("this model has no tokenizer, so it cannot read text")
    if not text.strip():
        raise BadValue(f"there is no text to classify in {text!r}: give one that is not blank")
    [scores] = class_log_probabilities(model, model.tokenizer, [text], length)
    return sorted(zip(model.labels, np.exp(scores).tolist(), strict=True), key=lambda pair: -pair[1])


__all__ = ["Classes", "ClassesKind", "class_log_probabilities", "class_measures", "classify", "stdlib_functions"]
