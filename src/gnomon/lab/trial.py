"""One language model of a grid: built, trained, measured, kept. What it does depends on its cell alone."""

import hashlib
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from gnomon.checkpoints.native import save_model
from gnomon.data import LMBatches, Tokenizer, TokenStore
from gnomon.data.files import cache_folder
from gnomon.device import resolve_device
from gnomon.errors import BadInput
from gnomon.lab.cell import Cell, Result, Tell, restored
from gnomon.lab.drawing import draw_model
from gnomon.lab.protocols import (
    Targets,
    choose_targets,
    document_nats,
    far_attention,
    has_positions,
    in_windows,
    nats_by_position,
    sliding,
)
from gnomon.lab.settings import LabSettings, Trial
from gnomon.models import DecoderOnly
from gnomon.positions import PositionEncoding
from gnomon.train import Windows, adamw, training_step, warmup_cosine
from gnomon.train.ranks import Ranks
from gnomon.train.step import NotFinite

TRAINING = 0.85  # the share of a trial that is training, about
LOSSES = 200  # points kept of the training curve

OnStep = Callable[[int, float], None]  # steps taken, loss in nats


@dataclass(frozen=True)
class CorpusRef:
    """A tokenised corpus by its fingerprint, for processes that share the file with its tokens."""

    sha256: str
    n_documents: int

    def open(self, tokenizer: Tokenizer) -> TokenStore:
        """The tokens."""
        return TokenStore.find(self.sha256, self.n_documents, tokenizer)


@dataclass(frozen=True)
class TrialCell(Cell):
    """A language model under one encoding: trained on windows, measured on ever longer ones.

    settings   of one trial: one encoding, one way to combine it, one seed
    training, held_out   the texts; tokenizer: SHA-256 of theirs, kept in the cache
    imported   modules of the user's, to be imported before the settings are read
    """

    settings: LabSettings
    training: CorpusRef
    held_out: CorpusRef
    tokenizer: str
    imported: tuple[str, ...] = ()
    apart: ClassVar[tuple[str, ...]] = ("imported",)

    @property
    def trial(self) -> Trial:
        """Encoding, way to combine it, and seed."""
        [trial] = self.settings.trials()
        return trial

    @property
    def label(self) -> str:
        """As in tables; the seed is in the name of the folder."""
        return self.trial.label

    @property
    def folder_name(self) -> str:
        """The encoding, and the seed where it is not 0."""
        return self.trial.folder

    @property
    def work(self) -> float:
        """Tokens to train on."""
        s = self.settings
        return float(s.train.steps * s.train.batch_size * s.train_length)

    @property
    def n_threads(self) -> int:
        """As set."""
        return self.settings.threads

    @property
    def n_gpus(self) -> int:
        """As set."""
        return self.settings.gpus

    @property
    def on_gpu(self) -> bool:
        """Whether the device is one."""
        return resolve_device(self.settings.device).type == "cuda"

    @property
    def modules(self) -> tuple[str, ...]:
        """The user's, those that define its encodings among them."""
        defining = [kind.__module__ for kind in self.code() if not kind.__module__.startswith("gnomon.")]
        return tuple(dict.fromkeys([*self.imported, *defining]))

    def code(self) -> list[type]:
        """The encodings, and their recipes of positions."""
        specs = self.settings.fitted(self.trial.position)
        return [kind for spec in specs for kind in (spec.cls, type(spec.positions)) if kind is not type(None)]

    def needs(self) -> list[Path]:
        """The tokenizer and both tokenised texts."""
        vocabulary = tokenizer_folder(self.tokenizer)
        tokenizer = Tokenizer.load(vocabulary)
        texts = [TokenStore.place(text.sha256, text.n_documents, tokenizer) for text in (self.training, self.held_out)]
        return [*(path for path in vocabulary.iterdir() if path.is_file()), *texts]

    def run(self, folder: Path, tell: Tell) -> Result:
        """Train, measure and save the model."""
        return asdict(run(self, folder, tell))


@dataclass(frozen=True)
class SweepCell(TrialCell):
    """A trial of a learning rate: trained, and measured at the training length only. No model is kept."""

    @property
    def folder_name(self) -> str:
        """The encoding and the rate."""
        return f"sweep-{self.trial.folder}-lr={self.settings.train.lr:g}"

    def run(self, folder: Path, tell: Tell) -> Result:
        """Nats for each document's targets; None where training went to infinity."""
        tokenizer = Tokenizer.load(tokenizer_folder(self.tokenizer))
        s = self.settings
        targets = choose_targets(self.held_out.open(tokenizer), s.train_length, s.factors, s.blocks)
        model = build(s, self.trial, tokenizer).to(resolve_device(s.device))
        store = self.training.open(tokenizer)
        try:
            train(model, store, s, self.trial, lambda step, loss: tell(step / s.train.steps, f"{loss:.2f}"))
            nats = document_nats(model, targets, s.train_length)
        except NotFinite:
            return {"nats": None}
        return {"nats": nats.tolist() if np.isfinite(nats).all() else None}


def tokenizer_folder(sha256: str) -> Path:
    """Where the lab keeps a tokenizer, by its fingerprint, for processes and machines that train with it."""
    return cache_folder() / "tokenizers" / sha256[:20]


@dataclass(frozen=True)
class Measurements:
    """What a trained model pays. None stands where its encoding has no meaning.

    nats         per length: per document, nats for its targets
    shifted      per document, at the training length, with the tokens placed at the end of the longest context
    by_position  nats summed over windows, at each position of the longest context the encoding allows
    far          at the longest context, the share of attention beyond the training length
    others       the same as nats by the other protocols that were asked for, by name
    """

    nats: list[list[float] | None]
    shifted: list[float] | None
    by_position: list[float]
    far: float | None
    others: dict[str, list[list[float] | None]]


@dataclass(frozen=True)
class TrialResult:
    """What came out of a trial.

    first    fingerprint of the first weights of everything that is not position
    losses   [steps taken, training loss in nats per token], now and then
    step_cpu_seconds   the processor's time for a step of training, the median, which other programs disturb little
    step_bytes         what a step keeps for its backward, and 16 bytes for each parameter: itself, its gradient and
                       the two moments of the optimizer
    """

    trial: Trial
    parameters: int
    position_parameters: int
    first: str
    measurements: Measurements
    losses: list[list[float]]
    tokens: int
    train_seconds: float
    step_cpu_seconds: float
    step_bytes: int
    measure_seconds: float

    @classmethod
    def from_result(cls, data: Result) -> "TrialResult":
        """What a cell returned. BadInput where another version of the lab did."""
        try:
            found: TrialResult = restored(cls, data)
        except (TypeError, KeyError) as error:
            raise BadInput(f"this result was not written by this version of the lab: {error}") from error
        return found


def run(cell: TrialCell, folder: Path, tell: Tell) -> TrialResult:
    """Train and measure the cell's model, and keep it in the folder."""
    tokenizer = Tokenizer.load(tokenizer_folder(cell.tokenizer))
    store, held_out = cell.training.open(tokenizer), cell.held_out.open(tokenizer)
    s, trial = cell.settings, cell.trial
    targets = choose_targets(held_out, s.train_length, s.factors, s.blocks)
    model = build(s, trial, tokenizer).to(resolve_device(s.device))
    first = fingerprint(model)
    began = time.perf_counter()
    losses, step_seconds = train(
        model, store, s, trial, lambda step, loss: tell(TRAINING * step / s.train.steps, f"{loss:.2f}")
    )
    trained = time.perf_counter()
    measurements = measure(model, targets, s)
    save_model(model, folder, tokenizer)
    return TrialResult(
        trial=trial,
        parameters=sum(p.numel() for p in model.parameters()),
        position_parameters=sum(p.numel() for name, p in model.named_parameters() if name in position_weights(model)),
        first=first,
        measurements=measurements,
        losses=losses,
        tokens=s.train.steps * s.train.batch_size * s.train_length,
        train_seconds=trained - began,
        step_cpu_seconds=step_seconds,
        step_bytes=bytes_of_step(model, LMBatches(store, s.train.batch_size, s.train_length, trial.seed).batch(0)),
        measure_seconds=time.perf_counter() - trained,
    )


def build(settings: LabSettings, trial: Trial, tokenizer: Tokenizer) -> DecoderOnly:
    """The trial's model."""
    specs = [spec.fitted(tokenizer) for spec in settings.fitted(trial.position)]
    return draw_model(tokenizer.vocab_size, specs, trial.seed, **settings.model.settings(trial.combine))


def position_weights(model: DecoderOnly) -> set[str]:
    """Names of the weights that are there for position: the encodings' own, and what a concatenation needs."""
    modules: dict[str, nn.Module] = {
        name: part for name, part in model.named_modules() if isinstance(part, PositionEncoding)
    }
    if model.input.project is not None:
        modules["input.project"] = model.input.project
    return {f"{prefix}.{name}" for prefix, part in modules.items() for name, _ in part.named_parameters()}


def fingerprint(model: nn.Module) -> str:
    """SHA-256 of every weight that is not position's, with its name."""
    assert isinstance(model, DecoderOnly)
    digest, position = hashlib.sha256(), position_weights(model)
    for name, weight in _named_weights(model):
        if name not in position:
            digest.update(name.encode() + weight.detach().cpu().numpy().tobytes())
    return digest.hexdigest()


def _named_weights(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from sorted(model.named_parameters())


def train(
    model: DecoderOnly, store: TokenStore, settings: LabSettings, trial: Trial, on_step: OnStep
) -> tuple[list[list[float]], float]:
    """Train the model; returns its training curve and the median seconds of a step.

    The batches depend on the seed alone, so all encodings see the same.
    """
    r, name = settings.train, settings.fitted(trial.position)[0].name
    peak = r.rate_of(trial.position, name)
    optimizer, device = adamw(model, peak, r.weight_decay), next(model.parameters()).device
    batches = LMBatches(store, r.batch_size, settings.train_length, trial.seed)
    every = max(1, r.steps // LOSSES)
    losses, seconds = [], []
    ranks = Ranks.here()
    together: nn.Module = model if ranks.size == 1 else nn.parallel.DistributedDataParallel(model)
    model.train()
    for step in range(r.steps):
        began = time.process_time()
        rate = warmup_cosine(step, peak, r.warmup, r.steps, r.floor * peak)
        ids = torch.from_numpy(batches.batch(step)).to(device)
        loss = training_step(together, optimizer, Windows(ids), rate, r.clip, ranks=ranks)
        seconds.append(time.process_time() - began)
        if (step + 1) % every == 0 or step + 1 == r.steps:
            losses.append([step + 1, loss.mean.item()])
            on_step(step + 1, losses[-1][1])
    model.eval()
    return losses, statistics.median(seconds)


def bytes_of_step(model: DecoderOnly, ids: "np.ndarray[Any, np.dtype[np.int64]]") -> int:
    """Bytes that a training step on these windows holds: what its forward keeps for the backward, counted once for each
    storage, and the parameters with their gradients and moments. Counted, not measured: the same on every machine."""
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        alive.append(tensor)
        return tensor

    alive: list[Tensor] = []  # a freed storage would lend its address to another
    parameters = {p.untyped_storage().data_ptr() for p in model.parameters()}
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        Windows(torch.from_numpy(ids).to(next(model.parameters()).device)).loss(model)
    activations = sum(size for at, size in kept.items() if at not in parameters)
    return activations + 16 * sum(p.numel() for p in model.parameters())


def measure(model: DecoderOnly, targets: Targets, settings: LabSettings) -> Measurements:
    """Everything that is measured of a trained model."""
    lengths = settings.lengths
    L, longest = lengths[0], lengths[-1]
    reach = max(n for n in lengths if has_positions(model, n))
    read = nats_by_position(model, targets, reach)

    def nats(n: int) -> list[float] | None:
        if not has_positions(model, n):
            return None
        paid: list[float] = (targets.of(read) if n == longest else document_nats(model, targets, n)).tolist()
        return paid

    return Measurements(
        nats=[nats(n) for n in lengths],
        shifted=document_nats(model, targets, L, longest - L).tolist()
        if has_positions(model, L, longest - L)
        else None,
        by_position=read.sum(0).tolist(),
        far=far_attention(model, targets, L) if has_positions(model, longest) else None,
        others={
            name: [way(model, targets, n).tolist() if has_positions(model, n) else None for n in lengths]
            for name, way in {"windows": in_windows, "sliding": sliding}.items()
            if name in settings.protocols
        },
    )


__all__ = [
    "CorpusRef",
    "Measurements",
    "SweepCell",
    "TrialCell",
    "TrialResult",
    "build",
    "fingerprint",
    "measure",
    "position_weights",
    "run",
    "train",
]
