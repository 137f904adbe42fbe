"""The task `numbers`: translation of numbers in words, where every answer can be checked.

Two sets of numbers are held out: one uniform, in which almost all numbers have as many digits as the limit, and one
log-uniform, in which all lengths are as frequent. What is trained on is drawn half and half in the same two ways, and
a number that is held out is left out. Of short numbers no more than about one in five is held out, so that the others
teach their words, and 0 never is: its word occurs in no other number.

Positions are absolute, because digits have to be counted. Where position only acts between tokens, as in RoPE or ALiBi,
tokens that are all alike keep the same vector however many they are, and 7 reads like 77.
"""

import hashlib
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import log1p
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from gnomon.data import Tokenizer
from gnomon.errors import BadInput, BadValue
from gnomon.glossary import message
from gnomon.tasks.kind import Kind
from gnomon.tasks.translation import Pair, Translation
from gnomon.train import Measure, TrainConfig
from gnomon.train.measure import share

Ints = np.ndarray[Any, np.dtype[np.int64]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]
Draw = Callable[[np.random.Generator, int, int], Ints]
Language = Literal["en", "es", "pt", "pt-br", "digits"]
LIBRARY_NAMES = {"en": "en", "es": "es", "pt": "pt", "pt-br": "pt_BR"}  # pt is the Portuguese of Portugal
VERSION = "0.5.14"  # of num2words; releases after it were taken over by an attacker and must not be installed
SPLIT_SEED = 2026  # of what is held out: the same for every run, so that runs can be compared
EXAMPLE = 241
LEARNED_FROM = 20_000  # numbers whose words a vocabulary is learned from


@dataclass(frozen=True)
class NumbersKind(Kind):
    """From which words to which, and of which numbers."""

    name = "numbers"
    about = "Translate numbers in words: --source and --target are en, es, pt, pt-br or digits."
    default_model: ClassVar[Mapping[str, object]] = {
        "architecture": "encoder-decoder",
        "vocab_size": 1024,
        "d_model": 128,
        "n_layers": 2,
        "n_heads": 4,
        "position": "learned",
        "max_positions": 64,
        "norm": "rmsnorm",
        "activation": "silu",
        "gated": True,
        "bias": False,
    }
    default_train = TrainConfig(
        steps=1500,
        batch_size=64,
        lr=2e-3,
        warmup=150,
        eval_windows=1000,
        eval_every=None,
        sample_every=None,
        log_every=20,
        save_every=400,
    )

    source: Language = "es"
    target: Language = "en"
    limit: int = 1_000_000  # numbers are below it
    count: int = 1000  # held out, of each of the two sets

    def __post_init__(self) -> None:
        if self.source == self.target:
            raise BadValue(f"source and target are both {self.source}: choose two of {', '.join(get_args(Language))}")
        if not 100 <= self.limit <= 10**7:
            raise BadValue(f"limit must be between 100 and 10 000 000, got {self.limit}")
        most = self.limit // 20
        if not 1 <= self.count <= most:
            raise BadValue(f"count must be between 1 and a twentieth of the limit, {most}; got {self.count}")

    @cached_property
    def held_out(self) -> Mapping[str, list[int]]:
        """The numbers that are never trained on, by how they were drawn."""
        rng = np.random.default_rng(SPLIT_SEED)
        fifth = rng.random(self.limit) < 0.2
        fifth[0] = False
        return {"uniform": self._distinct(rng, fifth, uniform), "log-uniform": self._distinct(rng, fifth, log_uniform)}

    def _distinct(self, rng: np.random.Generator, allowed: Bools, draw: Draw) -> list[int]:
        found: dict[int, None] = {}
        while len(found) < self.count:
            drawn = draw(rng, self.limit, self.count)
            found.update(dict.fromkeys(drawn[allowed[drawn]].tolist()))
        return list(found)[: self.count]

    def drawn(self, seed: int, number: int, n: int) -> list[int]:
        """`n` numbers to train on in step `number`."""
        rng = np.random.default_rng([seed, number])
        held = self._held
        many = 2 * n + 32  # of each, more than enough: about a fifth may be held out
        both = np.stack([uniform(rng, self.limit, many), log_uniform(rng, self.limit, many)], axis=1).flatten()
        return [int(drawn) for drawn in both[~held[both]][:n]]

    @cached_property
    def _held(self) -> Bools:
        held = np.zeros(self.limit, dtype=bool)
        held[[n for numbers in self.held_out.values() for n in numbers]] = True
        return held

    def texts(self) -> Iterable[str]:
        """Words for numbers that are trained on. Digits are left out, so that each stays a token of its own."""
        for language in (self.source, self.target):
            if language != "digits":
                yield from (spell(n, language) for n in self.drawn(SPLIT_SEED, 0, LEARNED_FROM))

    def task(self, tokenizer: Tokenizer, config: TrainConfig, quiet: bool = True) -> "Numbers":
        """The translation of these numbers."""
        return Numbers(self, tokenizer, config)

    def title(self) -> str:
        """numbers-es-en."""
        return f"numbers-{self.source}-{self.target}"

    def describe(self) -> str:
        """Which direction."""
        return message("data", "numbers", limit=self.limit, source=self.source, target=self.target, count=self.count)

    def next_step(self, folder: Path) -> str:
        """Ask it."""
        words = shlex.quote(spell(EXAMPLE, self.source))
        return f"Ask it: gnomon generate {shlex.quote(str(folder))} --source {words} --strategy beam"


class Numbers(Translation):
    """Numbers in the words of one language become words of another."""

    name = "numbers"

    def __init__(self, kind: NumbersKind, tokenizer: Tokenizer, config: TrainConfig) -> None:
        super().__init__(tokenizer, config)
        self.kind = kind
        self._held_out = {name: list(self.pairs(numbers)) for name, numbers in kind.held_out.items()}

    @cached_property
    def fingerprint(self) -> str:
        """Of the words themselves, so that another version of their library is noticed."""
        k = self.kind
        seen = hashlib.sha256(f"{k.source} {k.target} {k.limit} {k.count}".encode())
        for pair in chain(self.pairs(k.drawn(SPLIT_SEED, 0, 1000)), *self._held_out.values()):
            seen.update("\t".join(pair).encode() + b"\n")
        return seen.hexdigest()

    def pairs(self, numbers: Iterable[int]) -> Iterator[Pair]:
        """Each number in both languages."""
        return ((spell(n, self.kind.source), spell(n, self.kind.target)) for n in numbers)

    def draw(self, number: int) -> Sequence[Pair]:
        """As many numbers as a batch has rows."""
        return list(self.pairs(self.kind.drawn(self.config.seed, number, self.config.batch_size)))

    def held_out(self) -> Mapping[str, Sequence[Pair]]:
        """Two sets: uniform and log-uniform."""
        return self._held_out

    def score(self, name: str, answers: Sequence[str], references: Sequence[str]) -> Mapping[str, Measure]:
        """The share of answers that are right to the letter."""
        right = sum(answer == reference for answer, reference in zip(answers, references, strict=True))
        return {f"exact match {name}": share(right, len(references))}


def uniform(rng: np.random.Generator, limit: int, n: int) -> Ints:
    """(n,) numbers below `limit`, all alike."""
    return rng.integers(limit, size=n)


def log_uniform(rng: np.random.Generator, limit: int, n: int) -> Ints:
    """(n,) numbers below `limit`, one with few digits as probable as one with many: log(1 + x) is uniform."""
    return np.minimum(np.expm1(rng.random(n) * log1p(limit)), limit - 1).astype(np.int64)


def spell(n: int, language: str) -> str:
    """A number in words, or in digits.

    >>> spell(241, "es")
    'doscientos cuarenta y uno'
    """
    if language == "digits":
        return str(n)
    try:
        from num2words import num2words
    except ImportError as error:
        raise BadInput(
            f"numbers in words come from the package num2words, which is not installed: pip install "
            f"num2words=={VERSION} (exactly this version: later ones were malicious), or gnomon[tasks]"
        ) from error
    return str(num2words(n, lang=LIBRARY_NAMES[language]))


__all__ = ["Language", "Numbers", "NumbersKind", "log_uniform", "spell", "uniform"]
