"""Text: the task of guessing each next token of a text, from windows of it."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log

import numpy as np
import torch
from torch import nn

from gnomon.data import EvalWindows, LMBatches, Mixture, TokenStore, document_lengths, windows_for_eval
from gnomon.errors import BadInput, BadValue
from gnomon.generate import Sample, evaluation_mode, generate
from gnomon.layout import Layout
from gnomon.models import DecoderOnly, Model
from gnomon.shapes import Int
from gnomon.train.config import TrainConfig
from gnomon.train.evaluation import Evaluation, from_losses
from gnomon.train.loss import IGNORE, Loss, row_losses, window_labels, window_loss
from gnomon.train.measure import ratio
from gnomon.train.step import mixed_precision
from gnomon.train.task import check_made_for

SAMPLES = 3  # texts written each time


@dataclass(frozen=True)
class Windows:
    """Rows of T + 1 tokens for a causal model: it reads the first T of each, and all but the first are guessed.

    at         where they sit, (B, T + 1) or one row for all, None for 0..T; padding and ends of documents are no
               targets
    smoothing  see `cross_entropy`
    """

    ids: Int  # (B, T + 1)
    at: Layout | None = None
    smoothing: float = 0.0

    @property
    def targets(self) -> int:
        """How many tokens are guessed."""
        return int((window_labels(self.ids, self.at) != IGNORE).sum())

    def pieces(self, n: int) -> Iterator["Windows"]:
        """The rows in `n` runs, or in as many as there are rows."""
        for index in torch.arange(len(self.ids), device=self.ids.device).tensor_split(min(n, len(self.ids))):
            at = None if self.at is None else self.at.expand(len(self.ids)).rows(index)
            yield Windows(self.ids[index], at, self.smoothing)

    def loss(self, model: nn.Module) -> Loss:
        """What the model pays for the tokens it guesses."""
        return window_loss(model, self.ids, self.at, self.smoothing)

    def to(self, device: torch.device) -> "Windows":
        """The same windows on another device."""
        return Windows(self.ids.to(device), None if self.at is None else self.at.to(device), self.smoothing)


class Text:
    """Windows of one stream to train on, and fixed windows of another to be measured on."""

    name = "text"

    def __init__(
        self,
        train_store: TokenStore | Sequence[TokenStore],
        valid_store: TokenStore,
        config: TrainConfig,
        *,
        weights: Sequence[float] = (),
        apart: bool = False,
    ) -> None:
        """Of the config, batch_size, length, seed, eval_windows and label_smoothing are read.

        weights  of several streams to train on: the share of the rows that each has; the same where none are given
        apart    documents that share a window do not see one another, and their positions begin anew
        """
        self.train_stores = [train_store] if isinstance(train_store, TokenStore) else list(train_store)
        self.train_store, self.valid_store, self.config = self.train_stores[0], valid_store, config
        self.weights, self.apart = list(weights) or [1.0] * len(self.train_stores), apart
        first, eos = self.train_store.tokens, self.train_store.eos_id
        self.first_token = int(first[0]) if eos is None else eos

    @cached_property
    def fingerprint(self) -> str:
        """Of the training tokens."""
        digest = hashlib.sha256()
        for store in self.train_stores:
            digest.update(store.tokens.data)
        return digest.hexdigest()

    @cached_property
    def batches(self) -> LMBatches | Mixture:
        """The windows of each step."""
        c = self.config
        if len(self.train_stores) == 1:
            return LMBatches(self.train_store, c.batch_size, c.length, c.seed)
        return Mixture(self.train_stores, self.weights, c.batch_size, c.length, c.seed)

    @cached_property
    def windows(self) -> EvalWindows:
        """The windows to be measured on."""
        try:
            return windows_for_eval(self.valid_store, self.config.length, self.config.eval_windows, self.apart)
        except BadInput as error:
            raise BadInput(f"of what is held out for evaluation, {error}, or hold out more") from error

    def check(self, model: Model, config: TrainConfig) -> None:
        """Raise BadValue for a model that cannot learn this text, and BadInput for a text that fills no window."""
        check_made_for(self.config, config)
        if not isinstance(model, DecoderOnly):
            raise BadValue(f"next tokens are guessed by a decoder-only model; this one is {model.architecture}")
        if not model.config.causal:
            raise BadValue("a bidirectional model sees the token it is asked for: train one with causal=True")
        known = len(self.train_store.byte_lengths)
        if known > model.config.vocab_size:
            raise BadValue(
                f"the text has {known} different tokens, but the model knows {model.config.vocab_size}: "
                "build it with its tokenizer's vocab_size"
            )
        model.check(Layout.dense(1, config.length, next(model.parameters()).device))
        _ = self.windows, self.batches  # a text that fills no window is refused here, before anything is written

    def batch(self, number: int) -> Windows:
        """The windows of step `number`."""
        ids, n, at = torch.from_numpy(self.batches.batch(number)), self.config.length + 1, None
        if self.apart:
            places = self.batches.places(number)
            at = Layout.packed([document_lengths(store, start, n) for store, start in places])
        return Windows(ids, at, self.config.label_smoothing)

    def evaluate(self, model: nn.Module, dtype: torch.dtype = torch.float32) -> Evaluation:
        """Loss, perplexity and bits per byte of the held-out windows."""
        return evaluate(model, self.windows, self.config.batch_size, dtype)

    def samples(self, model: Model) -> list[str]:
        """What the model writes from the start of a document, as long as its windows; none without a tokenizer."""
        if model.tokenizer is None or not isinstance(model, DecoderOnly):
            return []
        prompts, longest = [[self.first_token]] * SAMPLES, self.config.length
        rows = generate(model, prompts, strategy=Sample(0.8), max_new_tokens=longest, seed=0, eos_ids=None)
        return [row.text for row in rows]


@torch.no_grad()
def evaluate(
    model: nn.Module, windows: EvalWindows, batch_size: int = 32, dtype: torch.dtype = torch.float32
) -> Evaluation:
    """Measure a model on windows of text, without dropout; the model comes back in the mode it was in.

    "bits per byte" of UTF-8 are comparable between tokenizers. Intervals come from drawing windows.
    """
    device = next(model.parameters()).device
    nats, targets = [], []
    with evaluation_mode(model):
        for start in range(0, len(windows.ids), batch_size):
            rows = slice(start, start + batch_size)
            ids = torch.from_numpy(windows.ids[rows].astype("int64")).to(device)
            at = None if windows.lengths is None else Layout.packed(windows.lengths[rows], device)
            with mixed_precision(device, dtype):
                logits = model(ids[:, :-1], None if at is None else at.tokens(slice(None, -1)))
                loss = row_losses(logits, window_labels(ids, at))
            nats.append(loss.total.cpu().double().numpy())
            targets.append(loss.count.cpu().numpy())
    all_nats, n_targets = np.concatenate(nats), np.concatenate(targets).astype(np.float64)
    bits = ratio(all_nats, windows.n_bytes * log(2))
    return from_losses(all_nats, n_targets, {"bits per byte": bits})


__all__ = ["Text", "Windows", "evaluate"]
