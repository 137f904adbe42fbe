"""A text of a few kilobytes, and models small enough to be trained within a test."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from gnomon.data import Corpus, Tokenizer, TokenStore
from gnomon.models import DecoderOnly
from gnomon.train import Task, TrainConfig
from gnomon.train import text as task

BuildModel = Callable[..., DecoderOnly]


@dataclass(frozen=True)
class Text:
    """A tokenized text in two parts."""

    tokenizer: Tokenizer
    train: TokenStore
    valid: TokenStore

    def task(self, config: TrainConfig, train: TokenStore | None = None) -> Task:
        """Guessing its next tokens; `train` is another text to train on."""
        return task.Text(self.train if train is None else train, self.valid, config)


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Text:
    """Small functions, one a document, as bytes."""
    corpus = Corpus.from_texts(f"def f{i}(x):\n    return x + {i * i}\n" for i in range(100))
    tokenizer = Tokenizer.bytes()
    folder = tmp_path_factory.mktemp("tokens")
    parts = (TokenStore.open(part, tokenizer, folder) for part in corpus.split(0.2))
    return Text(tokenizer, *parts)


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the plot of the losses, which takes longer than training a model this small."""
    monkeypatch.setattr("gnomon.train.loop.plot_loss", lambda metrics, path: None)


@pytest.fixture
def build(text: Text) -> BuildModel:
    """build(position="rope", dropout=0.1): a model of that text, the same weights each time."""

    def build(**changes: Any) -> DecoderOnly:
        torch.manual_seed(5)
        sizes: dict[str, Any] = {"d_model": 16, "n_layers": 1, "n_heads": 2, "max_positions": 8}
        model = DecoderOnly(text.tokenizer.vocab_size, **(sizes | changes))
        model.tokenizer = text.tokenizer
        return model

    return build


@pytest.fixture
def config() -> Callable[..., TrainConfig]:
    """config(steps=3): a short run, logged at every step, that saves and measures at the end only."""

    def config(**changes: Any) -> TrainConfig:
        short: dict[str, Any] = {
            "steps": 12,
            "batch_size": 2,
            "length": 8,
            "lr": 1e-2,
            "warmup": 3,
            "log_every": 1,
            "eval_windows": 4,
            "eval_every": None,
            "save_every": None,
            "sample_every": None,
        }
        return TrainConfig(**(short | changes))

    return config
