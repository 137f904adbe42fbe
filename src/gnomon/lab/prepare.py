"""What the trials of an experiment share: text, tokens, targets, a baseline, and a folder that is theirs."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
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
from gnomon.lab.settings import LabSettings
from gnomon.lab.trial import CorpusRef, TrialCell, tokenizer_folder

EXPERIMENT = "experiment.json"
GRID = ("positions", "combine", "seed", "seeds")  # settings that add trials and leave the others as they are

Source = Corpus | str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class Lab:
    """Everything that the trials of an experiment share."""

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
        return [
            TrialCell(self.settings.only(trial), self.training, self.held_out, self.tokenizer.sha256, self.imported)
            for trial in self.settings.trials()
        ]


def prepare(settings: LabSettings, corpus: Source, folder: Path, quiet: bool, imported: Sequence[str] = ()) -> Lab:
    """Read, split and tokenise the text, choose the targets, fit the trigram; all that can be wrong is found here.

    imported: modules that have made encodings known; those where the experiment's own are defined need no mention.
    """
    began = time.perf_counter()
    text = corpus if isinstance(corpus, Corpus) else Corpus.open(corpus)
    must_be_free(folder, settings, text)
    training, held_out = text.split(settings.held_out)
    tokenizer = Tokenizer.bpe(training.texts, settings.vocab_size)
    store = TokenStore.open(training, tokenizer, progress=counter("tokenising", quiet))
    held_out_store = TokenStore.open(held_out, tokenizer)
    if len(store.tokens) <= settings.train_length:
        raise BadInput(
            f"{training.name} has {len(store.tokens)} tokens, fewer than one window of {settings.train_length + 1}: "
            "give more text, or take a shorter training length"
        )
    targets = choose_targets(held_out_store, settings.train_length, settings.factors, settings.blocks)
    claim(folder, settings, text)  # not before all is known to be right: a mistake leaves the folder as it was
    tokenizer.save(folder)
    tokenizer.save(tokenizer_folder(tokenizer.sha256))
    about = {
        "name": text.name,
        "sha256": text.sha256,
        "documents": len(text.documents),
        "bytes": text.n_bytes,
        "training": {"documents": len(training.documents), "bytes": training.n_bytes, "tokens": len(store.tokens)},
        "held out": {"documents": len(held_out.documents), "bytes": held_out.n_bytes},
        "tokens in the vocabulary": tokenizer.vocab_size,
        "bytes per token": training.n_bytes / len(store.tokens),
    }
    return Lab(
        settings=settings,
        folder=folder,
        tokenizer=tokenizer,
        training=CorpusRef(training.sha256, len(training.documents)),
        held_out=CorpusRef(held_out.sha256, len(held_out.documents)),
        targets=targets,
        trigram=trigram_nats(training, held_out, held_out_store, targets),
        about=about,
        seconds=time.perf_counter() - began,
        imported=tuple(imported),
    )


def claim(folder: Path, settings: LabSettings, corpus: Corpus) -> None:
    """Write down what experiment the folder holds; BadValue where it already holds another one."""
    mine = must_be_free(folder, settings, corpus)
    with atomic(folder / EXPERIMENT) as out:
        out.write((json.dumps(mine, indent=2) + "\n").encode())


def must_be_free(folder: Path, settings: LabSettings, corpus: Corpus) -> dict[str, Any]:
    """What identifies this experiment; BadValue where the folder already holds another one, or something else."""
    mine = {"settings": settings.to_dict(), "corpus": corpus.sha256}
    file = folder / EXPERIMENT
    if file.exists():
        theirs = read_json(file)
        if different := _differences(theirs, mine):
            raise BadValue(
                f"{folder} holds another experiment ({different}): choose another folder, or remove that one"
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


def trigram_nats(training: Corpus, held_out: Corpus, store: TokenStore, targets: Targets) -> Floats:
    """(blocks, longest) nats that a byte trigram, fitted on the whole training text, pays for the bytes of each token
    of windows[:, 1:]. It always knows the two bytes before, also at the start of a window."""
    trigram = NGramBaseline(training)
    paid = np.zeros(targets.n_bytes.shape)
    for number, index in enumerate(targets.chosen.tolist()):
        bits = trigram.bits(held_out.documents[index].data)
        before = np.concatenate([[0.0], bits.cumsum()])  # what all bytes before each one cost
        starts = np.concatenate([[0], store.byte_lengths[store.document(index)].cumsum()])  # of each token, in bytes
        for block in np.flatnonzero(targets.document == number):
            end = targets.ends[block]
            paid[block] = np.diff(before[starts[end - targets.longest : end + 1]])
    return paid * log(2)


__all__ = ["EXPERIMENT", "Lab", "Source", "holds_another", "prepare"]
