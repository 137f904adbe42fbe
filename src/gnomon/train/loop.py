"""Training: steps in order, a save now and then, and a run folder from which training can always resume.

A run that was stopped and resumed is the uninterrupted run, bit for bit on the same machine with as many threads: what
step s does depends on the config, the task and s alone.
"""

import sys
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from tqdm import tqdm

from gnomon.checkpoints.native import load
from gnomon.checkpoints.staging import sweep
from gnomon.errors import BadInput
from gnomon.glossary import words
from gnomon.train.config import TrainConfig
from gnomon.train.evaluation import Evaluation
from gnomon.train.folder import new_folder, old_folder
from gnomon.train.interrupt import interrupt_on_signals
from gnomon.train.metrics import MetricsLog, plot_loss
from gnomon.train.run import Run
from gnomon.train.state import read_state, restore
from gnomon.train.task import Task

METRICS, PLOT = "metrics.jsonl", "loss.png"


@dataclass(frozen=True)
class TrainReport:
    """How a run ended."""

    folder: Path
    steps: int
    evaluation: Evaluation  #: on what is held out
    samples: list[str]  #: what the model can do, see the task
    seconds: float  #: of this call
    tokens_per_second: float  #: of this call's steps; 0 if there were none


def train(
    model: nn.Module,
    task: Task,
    config: TrainConfig,
    run_folder: str | Path,
    *,
    origin: Mapping[str, Any] | None = None,
    quiet: bool = False,
    lang: str = "en",
) -> TrainReport:
    """Train a model on a task, where it is (its device), and keep it in a new run folder.

    task    made with this config: `Text(train_store, valid_store, config)` for a language model
    origin  kept in the state of the run for whoever resumes it: for example where the data came from
    quiet   no progress bar and no samples on standard error; the last samples are only in the report
    lang    the language of progress: en, es or pt

    The first Ctrl-C, SIGTERM or SIGHUP ends the step, saves and raises KeyboardInterrupt; the second one quits at once.
    Raises BadValue for a folder that already holds something, for a model that cannot learn this task, and where the
    loss stops being a number (the folder then holds the last good save); BadInput where another process writes there.
    """
    with new_folder(run_folder) as folder:
        run = Run(model, task, config, folder, origin or {})
        run.save(0)  # a folder that cannot be written is known before the first step
        return _go(run, quiet, lang)


def resume(
    run_folder: str | Path,
    task: Task,
    *,
    model: nn.Module | None = None,
    device: torch.device | str = "cpu",
    changes: Mapping[str, Any] | None = None,
    quiet: bool = False,
    lang: str = "en",
) -> TrainReport:
    """Go on with a run from its last save, as if it had never stopped.

    task     made with the settings of the run (`read_state(run_folder).config`) and of its data
    model    one to put the saved weights into (a compiled one, say) instead of building it on `device`
    changes  of settings that leave it the same run, such as {"steps": 5000}

    Raises BadInput for a folder that holds no state, where the training data are not those the run began with, and
    where another process is at work in the folder.
    """
    with old_folder(run_folder) as folder:
        model = load(folder, device) if model is None else model
        state = read_state(folder)
        run = Run(model, task, state.config.with_changes(**(changes or {})), folder, state.origin)
        if run.state.data != state.data:
            raise BadInput(f"these are not the training data that {folder} began with: their fingerprint differs")
        restore(folder, model, run.optimizer)
        run.state = replace(run.state, step=state.step)
        sweep(folder)
        return _go(run, quiet, lang)


def _go(run: Run, quiet: bool, lang: str) -> TrainReport:
    """Take the steps that are left."""
    config, start, began = run.config, run.state.step, time.perf_counter()
    evaluation = samples = None
    w = words("train", lang)
    log = MetricsLog(run.folder / METRICS, until=start)
    if log.damaged:
        _say(f"{METRICS}: damaged lines are left out ({log.damaged})", quiet)
    asking = interrupt_on_signals(w("finishing"))
    with closing(log), _progress(config, start, quiet) as bar, asking as asked:
        run.model.train()
        for number in range(start, config.steps):
            loss = run.step(number)
            done, stop = number + 1, asked()
            last = done == config.steps
            bar.update()
            if last or _due(done, config.log_every):
                nats = loss.mean.item()
                log.write(done, loss=nats, lr=run.rate(number), tokens_per_second=round(run.tokens_per_second))
                bar.set_postfix_str(w("pace", loss=nats, speed=round(run.tokens_per_second)), refresh=False)
            if last or _due(done, config.eval_every):
                evaluation = run.evaluate()
                log.write(done, **evaluation.as_metrics())
                _say(w("evaluated", step=done, evaluation=evaluation.in_words(lang)), quiet)
            if last or _due(done, config.sample_every):
                samples = run.samples()
                log.write(done, samples=samples)
                _say("\n\n".join(samples), quiet or last)  # the last ones are the report's to show
            if last or stop or _due(done, config.save_every):
                run.save(done)
                plot_loss(log.lines, run.folder / PLOT)
            if stop and not last:
                _say(w("saved", step=done, folder=run.folder), quiet)
                raise stop
    if evaluation is None or samples is None:  # the run had ended before
        evaluation, samples = run.evaluate(), run.samples()
    seconds = time.perf_counter() - began
    return TrainReport(run.folder, run.state.step, evaluation, samples, seconds, run.tokens_per_second)


def _due(done: int, every: int | None) -> bool:
    return every is not None and done % every == 0


def _progress(config: TrainConfig, start: int, quiet: bool) -> "tqdm[None]":
    return tqdm(total=config.steps, initial=start, unit="step", disable=quiet or None)  # None: not into a pipe


def _say(text: str, quiet: bool) -> None:
    if not quiet:
        with suppress(OSError):  # the terminal is gone, or whoever read the pipe: no reason to lose a run
            tqdm.write(text, file=sys.stderr)


__all__ = ["METRICS", "PLOT", "TrainReport", "resume", "train"]
