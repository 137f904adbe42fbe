"""Run: what a training run does at each step, and the one state that its folder holds."""

import hashlib
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from gnomon.checkpoints.native import unwrapped
from gnomon.data import EvalWindows, LMBatches, TokenStore, windows_for_eval
from gnomon.device import resolve_dtype
from gnomon.errors import BadInput, BadValue
from gnomon.generate import Sample, generate
from gnomon.layout import Layout
from gnomon.models import Model, Writer
from gnomon.train.config import TrainConfig
from gnomon.train.evaluation import Evaluation, evaluate
from gnomon.train.loss import Loss
from gnomon.train.optim import adamw
from gnomon.train.schedule import warmup_cosine
from gnomon.train.state import State, save_run
from gnomon.train.step import NotFinite, training_step

SAMPLES = 3  # texts written each time


class Run:
    """A model, its optimizer and its text. Step s depends on the config, the text and s alone."""

    def __init__(
        self,
        model: nn.Module,
        train_store: TokenStore,
        valid_store: TokenStore,
        config: TrainConfig,
        folder: Path,
        origin: Mapping[str, Any],
    ) -> None:
        """Raises BadValue where the model cannot be trained like this, before anything is written."""
        self.model, self.inner, self.folder = model, unwrapped(model), folder
        _check(self.inner, train_store, config)
        self.device = next(model.parameters()).device
        self.dtype = training_dtype(config.dtype, self.device)
        self.config = replace(config, dtype=str(self.dtype).removeprefix("torch."))  # "auto" is decided once a run
        if self.dtype == torch.float64:
            model.to(self.dtype)
        self.optimizer = adamw(model, config.lr, config.weight_decay)
        self.batches = LMBatches(train_store, config.batch_size, config.length, config.seed)
        self.windows = _held_out(valid_store, config)
        self.first_token = int(train_store.tokens[0]) if train_store.eos_id is None else train_store.eos_id
        self.state = State(0, self.config, hashlib.sha256(train_store.tokens.data).hexdigest(), origin)
        self.steps, self.seconds = 0, 0.0  # taken here, and the time they took

    def step(self, number: int) -> Loss:
        """Take step `number`, 0-based; raises NotFinite, with the way out, where the numbers overflow."""
        before = time.perf_counter()
        torch.manual_seed(_mixed_seed(self.config.seed, number))  # what dropout draws from
        ids = torch.from_numpy(self.batches.batch(number)).to(self.device)
        c = self.config
        try:
            loss = training_step(
                self.model, self.optimizer, ids, None, self.rate(number), c.clip, c.accumulate, self.dtype
            )
        except NotFinite as error:
            raise NotFinite(
                f"training stopped at step {number}: {error}. Take a lower lr or a longer warmup. "
                f"{self.folder} holds the weights of step {self.state.step}"
            ) from error
        self.steps, self.seconds = self.steps + 1, self.seconds + time.perf_counter() - before
        return loss

    def rate(self, number: int) -> float:
        """The learning rate of step `number`."""
        c = self.config
        return warmup_cosine(number, c.lr, c.warmup, c.steps, c.floor * c.lr)

    @property
    def tokens_per_second(self) -> float:
        """Targets over the time of the steps; 0 before the first."""
        return self.steps * self.config.batch_size * self.config.length / self.seconds if self.steps else 0.0

    def evaluate(self) -> Evaluation:
        """Measure the model on held-out text."""
        return evaluate(self.model, self.windows, self.config.batch_size, self.dtype)

    def samples(self) -> list[str]:
        """What the model writes from the start of a document, as long as its windows; none without a tokenizer."""
        if self.inner.tokenizer is None or not isinstance(self.inner, Writer):
            return []
        prompts, longest = [[self.first_token]] * SAMPLES, self.config.length
        rows = generate(self.inner, prompts, strategy=Sample(0.8), max_new_tokens=longest, seeds=0, eos_ids=None)
        return [row.text for row in rows]

    def save(self, done: int) -> None:
        """Make the state after `done` steps the one that the folder holds."""
        state = replace(self.state, step=done)
        save_run(self.folder, self.model, self.optimizer, state)
        self.state = state


def _held_out(store: TokenStore, config: TrainConfig) -> EvalWindows:
    try:
        return windows_for_eval(store, config.length, config.eval_windows)
    except BadInput as error:
        raise BadInput(f"of what is held out for evaluation, {error}, or hold out more") from error


def training_dtype(name: str, device: torch.device) -> torch.dtype:
    """The dtype of a name. "auto" is float32 on a CPU: there a stopwatch says whether bfloat16 pays, and what numbers a
    seed gives must not depend on how busy the machine is."""
    return torch.float32 if name == "auto" and device.type == "cpu" else resolve_dtype(name, device)


def _check(model: Model, store: TokenStore, config: TrainConfig) -> None:
    if not model.config.causal:
        raise BadValue("a bidirectional model sees the token it is asked for: train one with causal=True")
    if len(store.byte_lengths) > model.config.vocab_size:
        raise BadValue(
            f"the text has {len(store.byte_lengths)} different tokens, but the model knows {model.config.vocab_size}: "
            "build it with its tokenizer's vocab_size"
        )
    model.check(Layout.dense(1, config.length, next(model.parameters()).device))


def _mixed_seed(seed: int, number: int) -> int:
    """One seed from two numbers, such that neighbours have nothing in common."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0])


__all__ = ["Run", "training_dtype"]
