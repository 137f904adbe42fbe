"""How long an experiment will take on this machine, estimated from a few training steps."""

import statistics
import time
from dataclasses import replace

import torch

from gnomon.device import resolve_device
from gnomon.errors import BadValue
from gnomon.lab.machine import cores
from gnomon.lab.settings import LabSettings
from gnomon.models import DecoderOnly
from gnomon.train import Windows, adamw, training_step

TIMED = 4  # steps
SLACK = 1.1  # processes side by side share memory and caches
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


def rounds(settings: LabSettings, workers: int | None) -> int:
    """How many models one process trains after another."""
    many = max(1, cores() // settings.threads) if workers is None else workers
    return -(-len(settings.trials()) // many)


def steps_for(minutes: float, settings: LabSettings, workers: int | None) -> int:
    """Steps of training such that the experiment takes about so many minutes here, a sixth of them to measure."""
    if minutes <= 0:
        raise BadValue(f"minutes must be above 0, got {minutes:g}")
    step = seconds_per_step(settings, settings.vocab_size)
    return max(1, round(60 * minutes * 5 / 6 / (rounds(settings, workers) * step * SLACK)))


def estimate(settings: LabSettings, workers: int | None, step: float, tokens_read: int) -> tuple[float, float]:
    """Seconds to train and measure one model, and all. step: of one; tokens_read: by one model when it is measured."""
    per_token = step / (settings.train.batch_size * settings.train_length)
    one = SLACK * (settings.train.steps * step + READING * per_token * tokens_read)
    return one, one * rounds(settings, workers)


__all__ = ["estimate", "seconds_per_step", "steps_for"]
