"""What the trials of an experiment share: text, tokens, targets, a baseline, and a folder that is theirs."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log
from pathlib import Path
from typing import Any

import numpy as np

from gnomon.checkpoints.native import read_json
from gnomon.checkpoints.staging import contents
from gnomon.data import Corpus, NGramBaseline, Tokenizer, TokenStore, atomic
from gnomon.errors import BadInput, BadValue
from gnomon.lab.progress import counter
from gnomon.lab.protocols import Floats, Targets, choose_targets
from gnomon.lab.settings import LabSettings, Trial
from gnomon.lab.trial import CorpusRef, SweepCell, TrialCell, tokenizer_folder

EXPERIMENT = "experiment.json"
#: settings that add trials and leave the others as they are
GRID = (
    "positions",
    "combine",
    "seed",
    "seeds",
    "tasks",
    "train_lengths",
    "sizes",
    "trained_at",
)

Source = Corpus | str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class Texts:
    """What all panels of a grid share: text, split and tokenised."""

    corpus: Corpus
    training: Corpus
    held_out: Corpus
    tokenizer: Tokenizer
    tokens: TokenStore
    held_out_tokens: TokenStore
    seconds: float

    @cached_property
    def trigram(self) -> NGramBaseline:
        """Fitted on the whole training text."""
        return NGramBaseline(self.training)

    @property
    def about(self) -> dict[str, Any]:
        """Facts for a report."""
        text, training, held_out = self.corpus, self.training, self.held_out
        n_tokens = len(self.tokens.tokens)
        return {
            "name": text.name,
            "sha256": text.sha256,
            "documents": len(text.documents),
            "bytes": text.n_bytes,
            "training": {"documents": len(training.documents), "bytes": training.n_bytes, "tokens": n_tokens},
            "held out": {"documents": len(held_out.documents), "bytes": held_out.n_bytes},
            "tokens in the vocabulary": self.tokenizer.vocab_size,
            "bytes per token": training.n_bytes / n_tokens,
        }


@dataclass(frozen=True)
class Lab:
    """Everything that the trials of one panel share, which differ in encoding and seed."""

    settings: LabSettings
    folder: Path
    tokenizer: Tokenizer
    training: CorpusRef
    held_out: CorpusRef
    targets: Targets
    trigram: Floats  # (blocks, longest) nats that a byte trigram pays for each token of the targets' windows
    about: dict[str, Any]  # the corpus
    seconds: float  # that preparing took
    imported: tuple[str, ...] = ()  # modules of the user's, that made encodings known

    def cells(self) -> list[TrialCell]:
        """One cell per trial."""
        return [TrialCell(self.settings.only(trial), *self._shared) for trial in self.settings.trials()]

    def baselines(self) -> "dict[tuple[Trial, int], TrialCell]":
        """The same trials trained at longer lengths, those that are measured and divide the longest."""
        s = self.settings
        longest = s.lengths[-1] // s.train_length
        factors = [n for n in s.trained_at if n * s.train_length in s.lengths and longest % n == 0]
        return {(t, n): TrialCell(s.at_length(t, n), *self._shared) for t in s.trials() for n in factors}

    def sweep(self) -> dict[tuple[str, float], SweepCell]:
        """The cells by which a learning rate is chosen for each encoding."""
        return {key: SweepCell(settings, *self._shared) for key, settings in self.settings.sweep().items()}

    @property
    def _shared(self) -> tuple[CorpusRef, CorpusRef, str, tuple[str, ...]]:
        return self.training, self.held_out, self.tokenizer.sha256, self.imported


def read_texts(settings: LabSettings, corpus: Corpus, quiet: bool) -> Texts:
    """Split and tokenise the text. BadInput where it holds fewer tokens than one window."""
    began = time.perf_counter()
    training, held_out = corpus.split(settings.held_out)
    tokenizer = Tokenizer.bpe(training.texts, settings.vocab_size)
    store = TokenStore.open(training, tokenizer, progress=counter("tokenising", quiet))
    longest = max(settings.train_length, *settings.train_lengths, 0)
    if len(store.tokens) <= longest:
        raise BadInput(
            f"{training.name} has {len(store.tokens)} tokens, fewer than one window of {longest + 1}: "
            "give more text, or take a shorter training length"
        )
    held_out_store = TokenStore.open(held_out, tokenizer)
    seconds = time.perf_counter() - began
    return Texts(corpus, training, held_out, tokenizer, store, held_out_store, seconds)


def prepare(
    settings: LabSettings,
    corpus: Source,
    folder: Path,
    quiet: bool,
    imported: Sequence[str] = (),
    resume: bool = False,
) -> Lab:
    """Everything for an experiment of one panel; all that can be wrong is found here.

    imported: modules that have made encodings known; those where the experiment's own are defined need no mention.
    """
    [lab] = prepare_all(settings, corpus, folder, quiet, imported, resume)
    return lab


def prepare_all(
    settings: LabSettings,
    corpus: Source,
    folder: Path,
    quiet: bool,
    imported: Sequence[str] = (),
    resume: bool = False,
) -> list[Lab]:
    """The same for each panel of a grid."""
    corpus = corpus if isinstance(corpus, Corpus) else Corpus.open(corpus)
    must_be_free(folder, settings, corpus, resume)
    texts = read_texts(settings, corpus, quiet)
    labs = [_panel(s, texts, folder, imported) for s in settings.panels()]
    claim(folder, settings, corpus, resume)  # not before all is known to be right: a mistake leaves it as it was
    texts.tokenizer.save(folder)
    texts.tokenizer.save(tokenizer_folder(texts.tokenizer.sha256))
    return labs


def _panel(settings: LabSettings, texts: Texts, folder: Path, imported: Sequence[str]) -> Lab:
    """Choose the targets, and measure the trigram on them."""
    began = time.perf_counter()
    targets = choose_targets(texts.held_out_tokens, settings.train_length, settings.factors, settings.blocks)
    nats = trigram_nats(texts.trigram, texts.held_out, texts.held_out_tokens, targets)
    return Lab(
        settings=settings,
        folder=folder,
        tokenizer=texts.tokenizer,
        training=CorpusRef(texts.training.sha256, len(texts.training.documents)),
        held_out=CorpusRef(texts.held_out.sha256, len(texts.held_out.documents)),
        targets=targets,
        trigram=nats,
        about=texts.about,
        seconds=texts.seconds + time.perf_counter() - began,
        imported=tuple(imported),
    )


def claim(folder: Path, settings: LabSettings, corpus: Corpus, resume: bool = False) -> None:
    """Write down what experiment the folder holds; BadValue where it already holds another one."""
    mine = must_be_free(folder, settings, corpus, resume)
    with atomic(folder / EXPERIMENT) as out:
        out.write((json.dumps(mine, indent=2) + "\n").encode())


def must_be_free(folder: Path, settings: LabSettings, corpus: Corpus, resume: bool) -> dict[str, Any]:
    """What identifies this experiment; BadValue where the folder already holds another one, or something else. A grid
    that is resumed may have changed: what is still the same is found by content."""
    mine = {"settings": settings.to_dict(), "corpus": corpus.sha256}
    file = folder / EXPERIMENT
    if file.exists():
        theirs = read_json(file)
        if (different := _differences(theirs, mine)) and not resume:
            raise BadValue(
                f"{folder} holds another experiment ({different}): choose another folder, or resume it, which "
                "computes what has changed beside what it holds"
            )
    elif folder.is_dir() and contents(folder):
        raise BadValue(f"{folder} is not empty and holds no experiment: choose another folder")
    return mine


def holds_another(folder: Path, settings: LabSettings) -> bool:
    """Whether the folder is taken by something that `claim` would refuse to mix with this experiment, text aside."""
    file = folder / EXPERIMENT
    if not file.exists():
        return folder.is_file() or (folder.is_dir() and bool(contents(folder)))
    theirs = read_json(file)
    return bool(_differences({**theirs, "corpus": ""}, {"settings": settings.to_dict(), "corpus": ""}))


def _differences(theirs: dict[str, Any], mine: dict[str, Any]) -> str:
    there, here = _flat(theirs), _flat(json.loads(json.dumps(mine)))
    keys = [key for key in {**there, **here} if key.removeprefix("settings.") not in GRID]
    return ", ".join(
        f"{key.removeprefix('settings.')} {there.get(key)!s:.12} there, {here.get(key)!s:.12} here"
        for key in keys
        if there.get(key) != here.get(key)
    )


def _flat(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    parts = [_flat(v, f"{prefix}{k}.") if isinstance(v, dict) else {f"{prefix}{k}": v} for k, v in data.items()]
    return {key: value for part in parts for key, value in part.items()}


def trigram_nats(trigram: NGramBaseline, held_out: Corpus, store: TokenStore, targets: Targets) -> Floats:
    """(blocks, longest) nats that a byte trigram pays for the bytes of each token
    of windows[:, 1:]. It always knows the two bytes before, also at the start of a window."""
    paid = np.zeros(targets.n_bytes.shape)
    for number, index in enumerate(targets.chosen.tolist()):
        bits = trigram.bits(held_out.documents[index].data)
        before = np.concatenate([[0.0], bits.cumsum()])  # what all bytes before each one cost
        starts = np.concatenate([[0], store.byte_lengths[store.document(index)].cumsum()])  # of each token, in bytes
        for block in np.flatnonzero(targets.document == number):
            end = targets.ends[block]
            paid[block] = np.diff(before[starts[end - targets.longest : end + 1]])
    return paid * log(2)


__all__ = ["EXPERIMENT", "Lab", "Source", "holds_another", "prepare", "prepare_all"]
