"""A corpus, a model size and a finished experiment that are small enough for tests."""

import random
from pathlib import Path

import pytest

from gnomon.data import Corpus, Tokenizer, TokenStore
from gnomon.lab import LabReport, LabSettings, Recipe, Size
from gnomon.lab.experiments import experiment

SENTENCE = "the dog bit the man and then a cat saw that old bird near water while rain fell on every quiet roof"
WORDS = SENTENCE.split(" ")


def text(seed: int, words: int) -> str:
    """A text that looks like one and is the same every time."""
    rng = random.Random(seed)
    return " ".join(rng.choice(WORDS) for _ in range(words)) + "\n"


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    """Documents of about 100 to 400 tokens."""
    return Corpus.from_texts([text(i, 60 + 40 * (i % 7)) for i in range(40)], name="words")


@pytest.fixture(scope="session")
def settings() -> LabSettings:
    """Windows of 8 tokens, measured up to 32, a model of one narrow layer, four steps."""
    return LabSettings(
        positions=("none", "sinusoidal", "learned", "rope", "alibi", "t5"),
        train_length=8,
        factors=(1, 2, 4),
        vocab_size=300,
        held_out=0.3,
        blocks=3,
        model=Size(d_model=16, n_layers=2, n_heads=2, init_std=0.25),
        train=Recipe(steps=4, batch_size=2, warmup=1),
    )


@pytest.fixture(scope="session")
def tokenizer(corpus: Corpus) -> Tokenizer:
    return Tokenizer.bpe(corpus.texts, 300)


@pytest.fixture(scope="session")
def store(corpus: Corpus, tokenizer: Tokenizer) -> TokenStore:
    return TokenStore.open(corpus, tokenizer)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the finished experiment is kept."""
    return tmp_path_factory.mktemp("experiment")


@pytest.fixture(scope="session")
def report(settings: LabSettings, corpus: Corpus, folder: Path) -> LabReport:
    """What a finished experiment found."""
    return experiment(settings, corpus, folder, workers=1)
