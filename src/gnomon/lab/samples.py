"""A sample of text from the best model of an experiment."""

from pathlib import Path

from gnomon.checkpoints import load
from gnomon.generate import Sample, generate
from gnomon.lab.report import LabReport, TextSample
from gnomon.models import DecoderOnly

TEMPERATURE = 0.7


def best_model(report: LabReport, folder: str | Path) -> Path:
    """The folder of the best model at the longest context, of its first seed."""
    trial = next(trial for trial in report.settings.trials() if trial.label == report.best.label)
    return Path(folder) / trial.folder


def write(report: LabReport, folder: str | Path, prompt: str, tokens: int = 192) -> TextSample:
    """What the best model writes after `prompt`; the same text every time."""
    model = load(best_model(report, folder), kind=DecoderOnly)
    [written] = generate(model, [prompt], strategy=Sample(TEMPERATURE), max_new_tokens=tokens, seed=0, eos_ids=None)
    return TextSample(report.best.label, prompt, written.text)


__all__ = ["best_model", "write"]
