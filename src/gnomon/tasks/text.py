"""The task `text`: a language model of your files, of JSONL, or of the standard library's source."""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Self

from tqdm import tqdm

from gnomon.data import Corpus, Tokenizer, TokenStore
from gnomon.tasks.kind import Kind
from gnomon.train import Task, Text, TrainConfig

NOT_PATHS = ("-", "stdlib")


@dataclass(frozen=True)
class TextKind(Kind):
    """Where the text comes from and how much of it is held out."""

    name = "text"
    about = "Guess each next token of a text."
    takes = "sources"
    preset: ClassVar[str | None] = "mini-gpt"

    sources: tuple[str, ...] = ("stdlib",)
    text_key: str = "text"
    held_out: float = 0.05

    @cached_property
    def parts(self) -> tuple[Corpus, Corpus]:
        """What is trained on and what is held out."""
        return self.corpus.split(self.held_out)

    @cached_property
    def corpus(self) -> Corpus:
        """All of it."""
        return Corpus.open(self.sources, self.text_key)

    def texts(self) -> Iterable[str]:
        """The documents that are trained on."""
        return self.parts[0].texts

    def task(self, tokenizer: Tokenizer, config: TrainConfig, quiet: bool = True) -> Task:
        """Windows of the text as token ids, encoded where the cache does not hold them yet."""
        training, held_out = (store_tokens(part, tokenizer, quiet) for part in self.parts)
        return Text(training, held_out, config)

    def task_on(self, sources: tuple[str, ...], tokenizer: Tokenizer, config: TrainConfig, quiet: bool) -> Task:
        """Measured on windows of another text."""
        store = store_tokens(Corpus.open(sources, self.text_key), tokenizer, quiet)
        return Text(store, store, config)

    def describe(self) -> str:
        """Files, documents and bytes."""
        return self.corpus.describe()

    def next_step(self, folder: Path) -> str:
        """Write."""
        beginning = "def " if self.sources == ("stdlib",) else ""
        return f"Let it write: gnomon generate {shlex.quote(str(folder))} --prompt {shlex.quote(beginning)}"

    def with_absolute_paths(self) -> Self:
        """The same text, found from any folder."""
        return replace(self, sources=tuple(s if s in NOT_PATHS else str(Path(s).absolute()) for s in self.sources))


def store_tokens(corpus: Corpus, tokenizer: Tokenizer, quiet: bool) -> TokenStore:
    """The corpus as token ids, encoded where the cache does not hold them yet."""
    with tqdm(
        total=0, desc="tokenizing", unit="B", unit_scale=True, leave=False, disable=quiet or None, delay=1
    ) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        return TokenStore.open(corpus, tokenizer, progress=progress)


__all__ = ["TextKind", "store_tokens"]
