"""Examples of a task as rows of tokens, and the split: what is tested is drawn first, and training leaves it out.

    START question ANSWER answer END                a causal model, which writes the answer
    START question ANSWER BLANK BLANK BLANK         a bidirectional one, which fills the blanks in one forward

Lengths of training and of testing are disjoint but for the first stretch, the longer half of training's lengths, which
says whether the task was learned at all; no question of it is ever trained on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from gnomon.errors import BadValue
from gnomon.lab.exact.tasks import ExactTask
from gnomon.layout import Layout
from gnomon.models import DecoderOnly
from gnomon.shapes import Bool, Int
from gnomon.train.loss import Loss

START, ANSWER, END, BLANK = range(4)
SPECIAL = 4  # symbol s is token SPECIAL + s
LENGTHS = 4  # of a stretch that are tested
TRIES = 200  # draws for one example that is not taken yet

TRAINING, TESTING, CHECKING = range(3)  # streams of random numbers

Pair = tuple[tuple[int, ...], tuple[int, ...]]  # question and answer, in symbols


@dataclass(frozen=True)
class Stretch:
    """Lengths that are tested together, shortest and longest, and those of them that are really drawn."""

    first: int
    last: int

    @property
    def lengths(self) -> list[int]:
        """At most four, evenly spread, the longest always."""
        spread = np.linspace(self.last, self.first, LENGTHS + 1)[:-1] if self.last - self.first >= LENGTHS else ()
        return sorted({round(n) for n in spread} or set(range(self.first, self.last + 1)))


def stretches(train_length: int, factors: Sequence[float]) -> list[Stretch]:
    """The longer half of training's lengths, then what lies between one factor and the next."""
    ends = [train_length, *(round(train_length * factor) for factor in sorted(factors) if factor > 1)]
    if len(set(ends)) < len(ends):
        raise BadValue(f"factors {tuple(factors)} of {train_length} name one length twice: {ends}")
    starts = [train_length // 2 + 1, *(end + 1 for end in ends[:-1])]
    return [Stretch(first, last) for first, last in zip(starts, ends, strict=True)]


@dataclass(frozen=True)
class Split:
    """The examples of one seed: test sets by stretch, and batches that hold none of them."""

    task: ExactTask
    train_length: int
    factors: tuple[float, ...]
    count: int  # tested in each stretch
    seed: int

    @property
    def stretches(self) -> list[Stretch]:
        """See the module."""
        return stretches(self.train_length, self.factors)

    @cached_property
    def n_symbols(self) -> int:
        """Of all questions."""
        return self.task.n_symbols(self.stretches[-1].last)

    @cached_property
    def tested(self) -> list[list[Pair]]:
        """The test set of each stretch; no question twice."""
        rng = np.random.default_rng([self.seed, TESTING])
        taken: set[tuple[int, ...]] = set()
        return [
            [self.fresh(rng, n, taken) for n in stretch.lengths for _ in range(self.count // len(stretch.lengths))]
            for stretch in self.stretches
        ]

    def grid(self, depths: Sequence[float], each: int) -> Iterator[tuple[int, float, list[Pair]]]:
        """Of a task with depths: the longest length of each stretch, a depth, and examples of both."""
        rng = np.random.default_rng([self.seed, TESTING, 1])
        for stretch in self.stretches:
            for depth in depths:
                yield stretch.last, depth, [self.draw(rng, stretch.last, depth) for _ in range(each)]

    @cached_property
    def left_out(self) -> set[tuple[int, ...]]:
        """Questions that no batch holds."""
        return {question for question, _ in self.tested[0]}

    def draw(self, rng: np.random.Generator, n: int, depth: float | None = None) -> Pair:
        """Any example of a length."""
        return self.task.example(rng, n, self.n_symbols, depth)

    def fresh(self, rng: np.random.Generator, n: int, taken: set[tuple[int, ...]]) -> Pair:
        """An example that is not in `taken` yet; it is then."""
        for _ in range(TRIES):
            pair = self.draw(rng, n)
            if pair[0] not in taken:
                taken.add(pair[0])
                return pair
        raise BadValue(
            f"{self.task.name} has too few questions of length {n} for {self.count} to test without one twice: take a "
            "longer training length, or test fewer"
        )

    def batch(self, number: int, rows: int, stream: int = TRAINING) -> list[Pair]:
        """The examples of step `number`, a function of the seed and this number alone; lengths are uniform."""
        rng = np.random.default_rng([self.seed, stream, number])
        lengths = rng.integers(self.task.least, self.train_length + 1, size=rows)
        return [self.trained_on(rng, int(n)) for n in lengths]

    def trained_on(self, rng: np.random.Generator, n: int) -> Pair:
        """An example that is not tested."""
        for _ in range(TRIES):
            pair = self.draw(rng, n)
            if pair[0] not in self.left_out:
                return pair
        raise BadValue(f"every question of {self.task.name} of length {n} is tested, so none is left to train on")


# ------------------------------------------------------------------ rows of tokens


def framed(pair: Pair) -> list[int]:
    """START question ANSWER answer, as tokens."""
    question, answer = pair
    return [START, *(s + SPECIAL for s in question), ANSWER, *(s + SPECIAL for s in answer)]


@dataclass(frozen=True)
class Rows:
    """Rows to learn from, padded on the right; only the answers are targets, and END where the model learns to stop.

    ids     (B, T); real (B, T): where there is a token
    labels  (B, T): what the model says at each token, -100 where it is not asked
    """

    ids: Int
    labels: Int
    real: Bool

    @property
    def targets(self) -> int:
        """Labels."""
        return int((self.labels >= 0).sum())

    def pieces(self, n: int) -> Iterator["Rows"]:
        """The rows in n runs."""
        for index in torch.arange(len(self.ids)).chunk(n):
            yield Rows(self.ids[index], self.labels[index], self.real[index])

    def loss(self, model: nn.Module) -> Loss:
        """What the model pays for its answers."""
        assert isinstance(model, DecoderOnly)
        # Nothing that a causal model is asked sees the padding after it, so it may be read like any token, without a
        # mask. A recipe for positions draws them for as many tokens as there are.
        plain = bool(self.real.all()) or (model.config.causal and model.recipe is None)
        at = None if plain else Layout.padded(self.real)
        asked = self.labels >= 0
        logits = model.head(model.hidden(self.ids, at)[asked])
        return Loss(F.cross_entropy(logits.float(), self.labels[asked], reduction="sum"), asked.sum())

    def to(self, device: torch.device) -> "Rows":
        """On another device."""
        return Rows(self.ids.to(device), self.labels.to(device), self.real.to(device))


def rows(pairs: Sequence[Pair], eos: bool, causal: bool = True) -> Rows:
    """Examples as rows for a causal model, or for one that fills blanks."""
    width = max(len(question) + len(answer) for question, answer in pairs) + 3
    ids, labels = np.full((len(pairs), width), BLANK), np.full((len(pairs), width), -100)
    for row, (question, answer) in enumerate(pairs):
        tokens, told = framed((question, answer)), len(question) + 2
        if causal:
            tokens = [*tokens, END] if eos else tokens
            ids[row, : len(tokens)] = tokens
            labels[row, told - 1 : len(tokens) - 1] = tokens[told:]
        else:
            ids[row, :told] = tokens[:told]
            labels[row, told : len(tokens)] = tokens[told:]
    lengths = np.array([len(q) + len(a) + 2 + (eos and causal) for q, a in pairs])
    used = int(lengths.max())
    real = np.arange(used) < lengths[:, None]
    ids, labels = ids[:, :used], labels[:, :used]
    return Rows(torch.from_numpy(ids), torch.from_numpy(labels), torch.from_numpy(real))


__all__ = [
    "ANSWER",
    "BLANK",
    "CHECKING",
    "END",
    "SPECIAL",
    "START",
    "Pair",
    "Rows",
    "Split",
    "Stretch",
    "framed",
    "rows",
    "stretches",
]
