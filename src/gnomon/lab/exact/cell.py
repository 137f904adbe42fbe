"""One model on one task: trained on short questions, asked longer ones. A pure function of its settings."""

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from gnomon.errors import BadValue
from gnomon.lab.cell import Cell, Result, Tell
from gnomon.lab.drawing import draw_model
from gnomon.lab.exact.answers import Scores, answered
from gnomon.lab.exact.examples import CHECKING, SPECIAL, Split, rows, stretches
from gnomon.lab.exact.settings import ExactRecipe, ExactSize
from gnomon.lab.exact.tasks import exact_task
from gnomon.lab.settings import LabSettings, parse_list
from gnomon.models import DecoderOnly
from gnomon.train import adamw, training_step, warmup_cosine

CHECKS = 10  # times the in-distribution rate is looked at while training
ASKED = 100  # fresh questions each time
DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class ExactCell(Cell):
    """A task, an encoding, a seed, and everything else that decides the numbers."""

    task: str
    position: str
    seed: int = 0
    train_length: int = 20
    factors: tuple[float, ...] = (1.0, 1.5, 2.0, 3.0)
    count: int = 100
    eos: bool = True
    model: ExactSize = field(default_factory=ExactSize)
    train: ExactRecipe = field(default_factory=ExactRecipe)
    imports: tuple[str, ...] = ()
    apart: ClassVar[tuple[str, ...]] = ("imports",)

    def __post_init__(self) -> None:
        exact_task(self.task)
        parse_list(self.position)
        for name, least in {"train_length": 2, "count": 1, "seed": 0}.items():
            if getattr(self, name) < least:
                raise BadValue(f"{name} must be at least {least}, got {getattr(self, name)}")
        if not all(factor >= 1 for factor in self.factors):
            raise BadValue(f"factors are multiples of the training length, 1 or more each; got {self.factors}")
        stretches(self.train_length, self.factors)

    @property
    def label(self) -> str:
        """Task, encoding and seed."""
        return f"{self.task} {self.position} {self.seed}"

    @property
    def modules(self) -> tuple[str, ...]:
        """The user's, that define encodings or tasks."""
        return self.imports

    @property
    def work(self) -> float:
        """In tokens, about."""
        return float(self.train.steps * self.train.batch_size * self.train_length)

    def code(self) -> Iterable[Any]:
        """The task's function and the encodings."""
        return [exact_task(self.task).draw, *(spec.cls for spec in parse_list(self.position))]

    @cached_property
    def split(self) -> Split:
        """Its examples."""
        return Split(exact_task(self.task), self.train_length, self.factors, self.count, self.seed)

    def build(self) -> DecoderOnly:
        """The model before training: the same weights but for position under every encoding."""
        longest = self.split.task.example(np.random.default_rng(0), self.train_length, self.split.n_symbols)
        tokens = sum(map(len, longest)) + 3
        settings = LabSettings(positions=(self.position,), train_length=max(4, tokens))
        specs = settings.fitted(self.position)
        return draw_model(SPECIAL + self.split.n_symbols, specs, self.seed, **asdict(self.model))

    def run(self, folder: Path, tell: Tell) -> Result:
        """Train and ask."""
        with torch.random.fork_rng(devices=[]):
            model = self.build()
            began = time.process_time()
            steps, loss = self.fit(model, tell)
            trained = time.process_time() - began
            return {
                "steps": steps,
                "loss": loss,
                "parameters": sum(p.numel() for p in model.parameters()),
                "cpu_seconds": round(trained, 2),
                "stretches": [
                    {"first": s.first, "last": s.last, **told(answered(model, pairs, self.eos))}
                    for s, pairs in zip(self.split.stretches, self.split.tested, strict=True)
                ],
                "depths": self.depths(model),
            }

    def fit(self, model: DecoderOnly, tell: Tell) -> tuple[int, float]:
        """Train it; returns the steps taken and the last loss in nats."""
        r, every = self.train, max(1, self.train.steps // CHECKS)
        optimizer = adamw(model, r.lr, r.weight_decay)
        device, loss = next(model.parameters()).device, float("nan")
        model.train()
        for step in range(r.steps):
            batch = rows(self.split.batch(step, r.batch_size), self.eos, self.model.causal).to(device)
            rate = warmup_cosine(step, r.lr, r.warmup, r.steps, r.floor * r.lr)
            paid = training_step(model, optimizer, batch, rate, r.clip)
            if (step + 1) % every == 0 or step + 1 == r.steps:
                loss = paid.mean.item()
                tell((step + 1) / r.steps, f"loss {loss:.3f}")
                if r.stop_at is not None and self.rate(model, step) >= r.stop_at:
                    break
        model.eval()
        return step + 1, loss

    def rate(self, model: DecoderOnly, step: int) -> float:
        """The share of fresh questions of training's lengths that are right; none of them is tested."""
        each = range(CHECKS * step, CHECKS * (step + 1))
        asked = [pair for n in each for pair in self.split.batch(n, ASKED // CHECKS, CHECKING)]
        scores = answered(model, asked, self.eos)
        assert scores is not None
        return float(np.mean(scores.exact if scores.stopped is None else scores.stopped))

    def depths(self, model: DecoderOnly) -> list[dict[str, Any]]:
        """Of a task with depths: what is right at each length and depth."""
        if not self.split.task.depth:
            return []
        each = max(1, self.count // len(DEPTHS))
        return [
            {"length": n, "depth": depth, **told(answered(model, pairs, self.eos))}
            for n, depth, pairs in self.split.grid(DEPTHS, each)
        ]


def told(scores: Scores | None) -> dict[str, Any]:
    """The three measures; None where there is none."""
    if scores is None:
        return {"examples": 0, "tokens": None, "exact": None, "stopped": None}
    stopped = None if scores.stopped is None else float(np.mean(scores.stopped))
    exact, tokens = float(np.mean(scores.exact)), float(np.mean(scores.tokens))
    return {"examples": len(scores.exact), "tokens": tokens, "exact": exact, "stopped": stopped}


__all__ = ["DEPTHS", "ExactCell"]
