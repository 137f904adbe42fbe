"""How long an experiment will take on this machine, estimated from a few training steps."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from gnomon.device import resolve_device
from gnomon.errors import BadValue
from gnomon.lab.machine import cores
from gnomon.lab.prepare import Lab
from gnomon.lab.settings import TEXT, LabSettings, Size
from gnomon.models import DecoderOnly
from gnomon.train import Windows, adamw, training_step

TIMED = 4  # steps
SLACK = 1.1  # processes side by side share memory and caches
MEASURING = 0.2  # of the time to train, the time to measure by one protocol
TASK_SECONDS = 60  # a model of a task with exact answers and its questions, about
READING = 0.35  # of the time to train on a token, the time to read one when measuring


def seconds_per_step(settings: LabSettings, vocab_size: int) -> float:
    """Time a training step of the experiment's models, the mean over its encodings, on as many threads as its workers
    have."""
    before = torch.get_num_threads()
    torch.set_num_threads(settings.threads)
    try:
        with torch.random.fork_rng(devices=[]):
            return statistics.mean(_seconds(settings, vocab_size, text) for text in settings.positions)
    finally:
        torch.set_num_threads(before)


def _seconds(settings: LabSettings, vocab_size: int, position: str) -> float:
    """Of one step under an encoding, or encodings that take turns."""
    size, r = settings.model, settings.train
    device, specs = resolve_device(settings.device), [replace(s, positions=None) for s in settings.fitted(position)]
    chosen = specs[0] if len(specs) == 1 else specs
    model = DecoderOnly(vocab_size, size.d_model, size.n_layers, size.n_heads, position=chosen, d_ff=size.d_ff)
    optimizer = adamw(model.to(device), r.lr)
    ids = torch.randint(vocab_size, (r.batch_size, settings.train_length + 1)).to(device)
    times = []
    for _ in range(TIMED):
        began = time.perf_counter()
        training_step(model, optimizer, Windows(ids), r.lr, r.clip)
        times.append(time.perf_counter() - began)
    return statistics.median(times[1:])


def steps_for(minutes: float, settings: LabSettings, workers: int | None) -> int:
    """Steps of training such that the experiment takes about so many minutes here, a sixth of them to measure."""
    if minutes <= 0:
        raise BadValue(f"minutes must be above 0, got {minutes:g}")
    many = _workers(settings, workers)
    step = seconds_per_step(settings, settings.vocab_size)
    return max(1, round(60 * minutes * 5 / 6 / (-(-len(settings.trials()) // many) * step * SLACK)))


def _workers(settings: LabSettings, workers: int | None) -> int:
    return max(1, cores() // settings.threads) if workers is None else workers


def estimate(labs: Sequence[Lab], workers: int | None) -> tuple[float, float]:
    """Seconds to train and measure the first model, and everything of these panels."""
    ones, total = [], 0.0
    for lab in labs:
        s = lab.settings
        step = seconds_per_step(s, lab.tokenizer.vocab_size)
        read = lab.targets.tokens_read(s.lengths) + (len(s.protocols) - 1) * lab.targets.tokens_in_windows(s.lengths)
        ones.append(_one(s, step, read))
        total += _all(s, step, read, _workers(s, workers))
    return ones[0], total


def _one(s: LabSettings, step: float, read: int) -> float:
    per_token = step / (s.train.batch_size * s.train_length)
    return SLACK * (s.train.steps * step + READING * per_token * read)


def _all(s: LabSettings, step: float, read: int, workers: int) -> float:
    """Trials, the same trained longer, and the sweep, shared among workers."""
    trials, one = len(s.trials()), _one(s, step, read)
    sweep = SLACK * step * sum(trial.train.steps for trial in s.sweep().values())
    return one * -(-trials * (1 + len(s.trained_at)) // workers) + sweep / workers


# ------------------------------------------------------------------ a grid that fits

LeftOut = tuple[tuple[str, dict[str, Any]], ...]
FEWEST_STEPS = 100


def fit(settings: LabSettings, seconds: float, workers: int | None) -> tuple[LabSettings, LeftOut]:
    """The grid as far as it fits into so many seconds here, and what was left out: keys of the glossary's group `grid`.

    What tells least for its time goes first: further sizes and lengths, tasks, the baseline, seeds beyond five, the
    sweep, seeds, protocols, encodings from the end; steps of training last.
    """
    if seconds <= 0:
        raise BadValue(f"a budget is a time above 0, got {seconds:g} seconds")
    steps = {panel.model: seconds_per_step(panel, panel.vocab_size) for panel in settings.panels()}
    left_out: list[tuple[str, dict[str, Any]]] = []
    for drop in _DROPS:
        while _rough(settings, steps, workers) > seconds and (found := drop(settings)) is not None:
            settings, what = found
            left_out = _joined(left_out, what)
    whole, needed = settings.train.steps, _rough(settings, steps, workers)
    if needed > seconds and TEXT in settings.tasks:
        fewer = max(min(FEWEST_STEPS, whole), int(whole * seconds / needed))
        settings = replace(settings, train=replace(settings.train, steps=fewer))
        left_out.append(("no_steps", {"what": whole - fewer, "all": whole}))
    return settings, tuple(left_out)


def _joined(left_out: list[tuple[str, dict[str, Any]]], what: tuple[str, dict[str, Any]]) -> list[tuple[str, Any]]:
    """With another thing left out: seeds add up, names are listed."""
    key, fields = what
    before = next((old for name, old in left_out if name == key), None)
    if before is not None and "all" in fields:
        fields = {"what": before["what"] + fields["what"], "all": before["all"]}
    elif before is not None:
        fields = {"what": f"{fields['what']}, {before['what']}"}
    return [*(old for old in left_out if old[0] != key), (key, fields)]


def _rough(settings: LabSettings, steps: Mapping[Size, float], workers: int | None) -> float:
    """Seconds, before the text is known: measuring takes a fifth of training by each protocol."""
    many, total = _workers(settings, workers), 0.0
    for panel in settings.panels():
        step = steps[panel.model] * panel.train_length / settings.train_length
        tokens = panel.train.batch_size * panel.train_length
        read = int(len(panel.protocols) * MEASURING * panel.train.steps * tokens / READING)
        total += _all(panel, step, read, many)
    exact = len([task for task in settings.tasks if task != TEXT]) * len(settings.task_lengths)
    models = exact * len(settings.positions) * settings.seeds * max(1, len(settings.sizes))
    return total + models * TASK_SECONDS * (settings.task_steps or 1500) / 1500 / many


Dropped = tuple[LabSettings, tuple[str, dict[str, Any]]] | None


def _drop_sizes(s: LabSettings) -> Dropped:
    return (replace(s, sizes=s.sizes[:1]), ("no_sizes", {"what": ", ".join(s.sizes[1:])})) if len(s.sizes) > 1 else None


def _drop_lengths(s: LabSettings) -> Dropped:
    named = ", ".join(map(str, s.train_lengths))
    return (replace(s, train_lengths=()), ("no_lengths", {"what": named})) if s.train_lengths else None


def _drop_tasks(s: LabSettings) -> Dropped:
    tasks = [task for task in s.tasks if task != TEXT]
    if TEXT not in s.tasks or not tasks:
        return None
    return replace(s, tasks=(TEXT,)), ("no_tasks", {"what": ", ".join(tasks)})


def _drop_baseline(s: LabSettings) -> Dropped:
    named = ", ".join(map(str, s.trained_at))
    return (replace(s, trained_at=()), ("no_baseline", {"what": named})) if s.trained_at else None


def _drop_rates(s: LabSettings) -> Dropped:
    return (replace(s, rates=()), ("no_rates", {})) if s.rates else None


def _drop_protocols(s: LabSettings) -> Dropped:
    others = [name for name in s.protocols if name != "fixed"]
    return (replace(s, protocols=("fixed",)), ("no_protocols", {"what": ", ".join(others)})) if others else None


def _seeds_down_to(least: int) -> "Callable[[LabSettings], Dropped]":
    def drop(s: LabSettings) -> Dropped:
        if s.seeds <= least:
            return None
        return replace(s, seeds=least), ("no_seeds", {"what": s.seeds - least, "all": s.seeds})

    return drop


def _drop_encoding(s: LabSettings) -> Dropped:
    if len(s.positions) <= 2:
        return None
    return replace(s, positions=s.positions[:-1]), ("no_positions", {"what": s.positions[-1]})


_DROPS = (
    _drop_sizes,
    _drop_lengths,
    _drop_tasks,
    _drop_baseline,
    _seeds_down_to(5),
    _drop_rates,
    _seeds_down_to(3),
    _drop_protocols,
    _seeds_down_to(1),
    _drop_encoding,
)

__all__ = ["estimate", "fit", "seconds_per_step", "steps_for"]
