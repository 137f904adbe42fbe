"""The task `pairs`: translation learned from a file with a source, a tab and its target on each line."""

import hashlib
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from gnomon.data import Tokenizer
from gnomon.errors import BadInput, BadValue
from gnomon.glossary import message
from gnomon.models import Model
from gnomon.tasks.kind import Kind
from gnomon.tasks.translation import Pair, Translation
from gnomon.train import Measure, TrainConfig
from gnomon.train.measure import bootstrap

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

Ints = np.ndarray[Any, np.dtype[np.int64]]
SPLIT_SEED = 2026  # of what is held out: it depends on the lines, not on the run


@dataclass(frozen=True)
class PairsKind(Kind):
    """Where the pairs are and how much of them is held out."""

    name = "pairs"
    about = "Translate: SOURCES are files of lines with a source, a tab and its target."
    takes = "files"
    default_model: ClassVar[Mapping[str, Any]] = {
        "architecture": "encoder-decoder",
        "vocab_size": 2048,
        "d_model": 128,
        "n_layers": 3,
        "n_heads": 4,
        "position": "rope",
        "norm": "rmsnorm",
        "activation": "silu",
        "gated": True,
        "bias": False,
        "dropout": 0.1,
    }
    default_train = TrainConfig(
        steps=2000, batch_size=32, lr=1e-3, label_smoothing=0.1, eval_windows=200, eval_every=1000, sample_every=None
    )

    files: tuple[str, ...] = ()
    held_out: float = 0.05  # share of the pairs

    def __post_init__(self) -> None:
        if not 0 < self.held_out < 1:
            raise BadValue(f"held_out is {self.held_out}, but must be a share between 0 and 1")

    @cached_property
    def parts(self) -> tuple[list[Pair], list[Pair]]:
        """What is trained on and what is held out: whole sources, so that no source is in both."""
        if not self.files:
            raise BadValue("give a file of pairs, one a line, source and target with a tab between")
        pairs = [pair for file in self.files for pair in read_pairs(file)]
        sources = sorted({source for source, _ in pairs})
        n = round(self.held_out * len(sources))
        if not 0 < n < len(sources):
            raise BadInput(
                f"{len(sources)} different sources cannot be split with {self.held_out} of them held out: give more "
                "pairs, or another held_out"
            )
        held = set(np.random.default_rng(SPLIT_SEED).permutation(sources)[:n].tolist())
        return [p for p in pairs if p[0] not in held], [p for p in pairs if p[0] in held]

    def texts(self) -> Iterable[str]:
        """Both sides of the training pairs."""
        return (text for pair in self.parts[0] for text in pair)

    def task(self, tokenizer: Tokenizer, config: TrainConfig, quiet: bool = True) -> "Pairs":
        """The translation of these pairs."""
        return Pairs(*self.parts, tokenizer, config)

    def task_on(self, sources: tuple[str, ...], tokenizer: Tokenizer, config: TrainConfig, quiet: bool) -> "Pairs":
        """Measured on all pairs of other files."""
        pairs = [pair for file in sources for pair in read_pairs(file)]
        if not pairs:
            raise BadInput(f"there are no pairs in {', '.join(sources)}: give a source, a tab and its target on a line")
        return Pairs([], pairs, tokenizer, config)

    def describe(self) -> str:
        """How many there are."""
        training, held_out = self.parts
        return message("data", "pairs", training=len(training), held=len(held_out))

    def next_step(self, folder: Path) -> str:
        """Ask it."""
        source = shlex.quote(self.parts[1][0][0])
        return f"Ask it: gnomon generate {shlex.quote(str(folder))} --source {source} --strategy beam"

    def with_absolute_paths(self) -> Self:
        """The same files, found from any folder."""
        return replace(self, files=tuple(str(Path(file).absolute()) for file in self.files))


def read_pairs(file: str | Path) -> Iterator[Pair]:
    """The pairs of a file; BadInput names the line that is none. Empty lines are left out."""
    try:
        lines = Path(file).read_text(encoding="utf-8-sig").split("\n")  # a line separator in a text is no new line
    except OSError as error:
        raise BadInput(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{file} is not UTF-8: {error.reason} at byte {error.start}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        source, *rest = (part.strip() for part in line.split("\t"))
        if len(rest) != 1 or not source or not rest[0]:
            raise BadInput(f"{file}, line {number}: expected a source, one tab and its target, got {line[:60]!r}")
        yield source, rest[0]


class Pairs(Translation):
    """Pairs in shuffled passes: each is trained on once in every pass."""

    name = "pairs"

    def __init__(
        self, training: Sequence[Pair], held_out: Sequence[Pair], tokenizer: Tokenizer, config: TrainConfig
    ) -> None:
        super().__init__(tokenizer, config)
        self.training, self._held_out = training, held_out
        self._orders: dict[int, Ints] = {}  # of the pass that is under way

    @cached_property
    def fingerprint(self) -> str:
        """Of the training pairs."""
        return hashlib.sha256("\n".join("\t".join(pair) for pair in self.training).encode()).hexdigest()

    def check(self, model: Model, config: TrainConfig) -> None:
        """Raise BadValue for a model that cannot learn this, or for pairs longer than config.length."""
        super().check(model, config)
        longest = self.longest(self.training) if self.training else 0
        if longest > config.length:
            raise BadValue(
                f"rows have at most length={config.length} tokens, but a training pair has {longest}: "
                f"--length {longest}, or take long pairs out"
            )

    def draw(self, number: int) -> Sequence[Pair]:
        """The next pairs of the pass."""
        B, n = self.config.batch_size, len(self.training)
        return [self.training[self._order(i // n)[i % n]] for i in range(number * B, (number + 1) * B)]

    def _order(self, turn: int) -> Ints:
        if turn not in self._orders:
            self._orders = {turn: np.random.default_rng([self.config.seed, turn]).permutation(len(self.training))}
        return self._orders[turn]

    def held_out(self) -> Mapping[str, Sequence[Pair]]:
        """One set."""
        return {"pairs": self._held_out}

    def score(self, name: str, answers: Sequence[str], references: Sequence[str]) -> Mapping[str, Measure]:
        """Corpus BLEU and chrF; the intervals come from drawing sentences (Koehn 2004, "Statistical significance
        tests for machine translation evaluation", section 3)."""
        bleu, chrf = _metrics()
        measured = _of_corpus(bleu, answers, references)
        return {
            "BLEU": replace(measured, note=_too_short(bleu, answers, references)),
            "chrF": _of_corpus(chrf, answers, references),
        }


def _metrics() -> "tuple[Metric, Metric]":
    try:
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF
    except ImportError as error:
        raise BadInput(
            "BLEU and chrF come from the package sacrebleu, which is not installed: pip install sacrebleu, or "
            "gnomon[eval]"
        ) from error
    return BLEU(), CHRF()


def _of_corpus(metric: "Metric", answers: Sequence[str], references: Sequence[str]) -> Measure:
    """The bootstrap is ours: sacrebleu's own raises TypeError where the score of some draw is exactly 0."""
    counts = np.array(metric._extract_corpus_statistics(answers, [references]))  # (n, K) whole numbers: a sum scores
    return bootstrap(
        lambda times: metric._compute_score_from_stats((times @ counts).round().astype(int).tolist()).score,
        len(answers),
    )


def _too_short(bleu: "Metric", answers: Sequence[str], references: Sequence[str]) -> str:
    """What to say where BLEU is 0, or next to it, because runs of four words do not occur and cannot match."""
    for side, texts in (("translation", answers), ("reference", references)):
        if bleu.corpus_score(list(texts), [list(texts)]).totals[-1] == 0:
            return f"it counts runs of one to four words, and no {side} has four; it says nothing here, go by chrF"
    return ""


__all__ = ["Pairs", "PairsKind", "read_pairs"]
