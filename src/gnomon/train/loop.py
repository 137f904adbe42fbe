"""Training: steps in order, a save now and then, and a run folder from which training can always resume.

A run that was stopped and resumed is the uninterrupted run, bit for bit on the same machine with as many threads: what
step s does depends on the config, the task and s alone.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import nn
from tqdm import tqdm

from gnomon.checkpoints.native import WEIGHTS, fill, load, read_tensors
from gnomon.checkpoints.staging import sweep
from gnomon.errors import BadInput, BadValue
from gnomon.glossary import Words, words
from gnomon.train.config import TrainConfig
from gnomon.train.evaluation import Evaluation
from gnomon.train.folder import new_folder, old_folder
from gnomon.train.interrupt import interrupt_on_signals
from gnomon.train.metrics import MetricsLog, SilentLog, plot_loss
from gnomon.train.ranks import Ranks
from gnomon.train.run import Run
from gnomon.train.state import BASE, keep_base, read_state, restore
from gnomon.train.step import Abandoned
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
    with ours(run_folder, new_folder) as folder:
        keep_base(model, config, folder)
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
    with ours(run_folder, old_folder) as folder:
        state = read_state(folder)
        if state.config.lora_rank is not None:
            if model is not None:
                raise BadValue(
                    "a run that trains changes of low rank begins with the model in its folder: leave model out"
                )
            model = load(folder / BASE, device)
        elif model is None:
            model = load(folder, device)
        else:
            fill(model, read_tensors(folder / WEIGHTS)[0], folder / WEIGHTS)
        run = Run(model, task, state.config.with_changes(**(changes or {})), folder, state.origin)
        if run.state.data != state.data:
            raise BadInput(
                f"these are not the training data that {folder} began with: their fingerprint is "
                f"{run.state.data[:12]}, that of the run {state.data[:12]}. Put the data back as they were, or start a "
                f"new run from this model: gnomon train --from {folder}"
            )
        restore(folder, run.model, run.optimizer, run.average)
        run.go_on_from(state)
        if run.ranks.first:
            sweep(folder)
        return _go(run, quiet, lang)


@contextmanager
def ours(folder: str | Path, how: Callable[[str | Path], AbstractContextManager[Path]]) -> Iterator[Path]:
    """The folder, taken by `how`, which the first process of a run does for all; BadInput where another one ends."""
    ranks = Ranks.here()
    told = f"{folder} holds the state of its last save: start again with --resume {folder}"
    with ranks.together(told), how(folder) if ranks.first else nullcontext(Path(folder)) as ours:
        ranks.wait()
        yield ours


def _go(run: Run, quiet: bool, lang: str) -> TrainReport:
    """Take the steps that are left."""
    config, start, began = run.config, run.state.step, time.perf_counter()
    quiet = quiet or not run.ranks.first
    evaluation = samples = None
    w = words("train", lang)
    log = MetricsLog(run.folder / METRICS, until=start) if run.ranks.first else SilentLog()
    if log.damaged:
        _say(f"{METRICS}: damaged lines are left out ({log.damaged})", quiet)
    asking = interrupt_on_signals(w("finishing"))
    with closing(log), _progress(config, start, quiet) as bar, asking as asked:
        run.model.train()
        for number in range(start, config.steps):
            try:
                loss, done = run.step(number, asked), number + 1
            except Abandoned:  # the weights are those of the step before
                _stop(run, log, number, asked(), w, quiet)
            last = done == config.steps
            stop, late = run.ranks.any(asked() is not None, run.minutes_passed)
            bar.update()
            if loss is None:
                log.write(done, skipped=run.state.health.skipped)
                _say(w("skipped", step=number), quiet)
            elif last or _due(done, config.log_every):
                nats = loss.mean.item()
                log.write(done, loss=nats, lr=run.rate(number), tokens_per_second=round(run.tokens_per_second))
                bar.set_postfix_str(w("pace", loss=nats, speed=round(run.tokens_per_second)), refresh=False)
            if last or _due(done, config.eval_every):
                evaluation = run.evaluate(done)
                log.write(done, **evaluation.as_metrics())
                _say(w("evaluated", step=done, evaluation=evaluation.in_words(lang)), quiet)
            if last or _due(done, config.sample_every):
                samples = run.samples()
                log.write(done, samples=samples)
                _say("\n\n".join(samples), quiet or last)  # the last ones are the report's to show
            if stop and not last:
                _stop(run, log, done, asked(), w, quiet)
            if last or late or _due(done, config.save_every):
                _save(run, log, done)
    if evaluation is None or samples is None:  # the run had ended before
        evaluation, samples = run.evaluate(config.steps), run.samples()
    seconds = time.perf_counter() - began
    return TrainReport(run.folder, run.state.step, evaluation, samples, seconds, run.tokens_per_second)


def _save(run: Run, log: MetricsLog, done: int) -> None:
    run.save(done)
    if run.ranks.first:
        plot_loss(log.lines, run.folder / PLOT)


def _stop(run: Run, log: MetricsLog, done: int, asked: KeyboardInterrupt | None, w: Words, quiet: bool) -> NoReturn:
    """Save after `done` steps and end as the signal would have it, in every process."""
    _save(run, log, done)
    _say(w("saved", step=done, folder=run.folder), quiet)
    raise asked or KeyboardInterrupt


def _due(done: int, every: int | None) -> bool:
    return every is not None and done % every == 0


def _progress(config: TrainConfig, start: int, quiet: bool) -> "tqdm[None]":
    return tqdm(total=config.steps, initial=start, unit="step", disable=quiet or None)  # None: not into a pipe


def _say(text: str, quiet: bool) -> None:
    if not quiet:
        with suppress(OSError):  # the terminal is gone, or whoever read the pipe: no reason to lose a run
            tqdm.write(text, file=sys.stderr)


__all__ = ["METRICS", "PLOT", "TrainReport", "ours", "resume", "train"]
