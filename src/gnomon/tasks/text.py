"""The task `text`: a language model of your files, of JSONL, or of the standard library's source."""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal, Self

from tqdm import tqdm

from gnomon.data import Corpus, Tokenizer, TokenStore
from gnomon.errors import BadValue
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
    weights: tuple[float, ...] = ()  # of the sources: the share of the rows that each has; else all are one text
    documents: Literal["joined", "apart"] = "joined"  # whether documents that share a window see one another

    def __post_init__(self) -> None:
        if self.weights and len(self.weights) != len(self.sources):
            raise BadValue(f"{len(self.sources)} sources need as many weights, got {len(self.weights)}")

    @cached_property
    def mixed(self) -> tuple[list[Corpus], Corpus]:
        """What each source has to train on, where they are mixed by weight, and what is held out of all of them. No
        text is in both, nor in two sources: the first that has it keeps it."""
        parts = [Corpus.open(source, self.text_key).split(self.held_out) for source in self.sources]
        held_out = [document for _, part in parts for document in part.documents]
        used = {document.sha256 for document in held_out}
        training = []
        for source, (part, _) in zip(self.sources, parts, strict=True):
            own = [document for document in part.documents if document.sha256 not in used]
            used |= {document.sha256 for document in own}
            training.append(Corpus.from_documents(own, f"{source} (training)"))
        return training, Corpus.from_documents(held_out, "held out of all sources")

    @cached_property
    def parts(self) -> tuple[Corpus, Corpus]:
        """What is trained on and what is held out."""
        if not self.weights:
            return self.corpus.split(self.held_out)
        training, held_out = self.mixed
        return Corpus.from_documents([d for part in training for d in part.documents], "all sources"), held_out

    @cached_property
    def corpus(self) -> Corpus:
        """All of it."""
        return Corpus.open(self.sources, self.text_key)

    def texts(self) -> Iterable[str]:
        """The documents that are trained on."""
        return (document.text for document in self.parts[0].documents)

    def task(self, tokenizer: Tokenizer, config: TrainConfig, quiet: bool = True) -> Task:
        """Windows of the text as token ids, encoded where the cache does not hold them yet."""
        training, held_out = (store_tokens(part, tokenizer, quiet) for part in self.parts)
        return Text(training, held_out, config)

    def task_on(self, sources: tuple[str, ...], tokenizer: Tokenizer, config: TrainConfig, quiet: bool) -> Task:
        """Measured on windows of another text."""
        store = store_tokens(Corpus.open(sources, self.text_key), tokenizer, quiet)
        return Text(store, store, config, apart=self.documents == "apart")

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
