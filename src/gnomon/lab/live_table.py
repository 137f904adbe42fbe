"""The table while it grows: a line for each model as soon as it has been measured, without intervals.

Its numbers are those of the table at the end, where the report pools seeds and adds what the documents settle.
"""

from collections.abc import Iterable, Sequence
from math import log

from gnomon.glossary import Words
from gnomon.lab.analysis import kind_of
from gnomon.lab.prepare import Lab
from gnomon.lab.settings import LabSettings, Trial
from gnomon.lab.summary import list_encodings, percent
from gnomon.lab.trial import TrialResult


class LiveTable:
    """Lines of the table of an experiment; the first ones say what the columns are and what a byte trigram reaches."""

    def __init__(self, lab: Lab, w: Words) -> None:
        settings = self.settings = lab.settings
        self.lab, self.w = lab, w
        self.bits_per_nat = 1 / (float(lab.targets.bytes_of_documents.sum()) * log(2))
        heads = [w("given", n=n) if n == settings.train_length else w.number(n) for n in settings.lengths]
        floor = w.number(float(lab.targets.of(lab.trigram).sum()) * self.bits_per_nat, ".3f")
        self.labels = max(len(w("trigram")), *(len(_name(trial, settings)) for trial in settings.trials()))
        self.widths = [max(len(head), 5) for head in heads]
        self.heading = [
            w("growing", trained=settings.train_length),
            self._line("", heads),
            self._line(w("trigram"), [floor] * len(heads)),
        ]

    def line(self, measured: TrialResult) -> str:
        """The line of a model: bits per byte at each length, the change from the first to the last, its kind."""
        w = self.w
        bits = [None if nats is None else sum(nats) * self.bits_per_nat for nats in measured.measurements.nats]
        cells = [w("n/a") if b is None else w.number(b, ".3f") for b in bits]
        first, last = bits[0], bits[-1]
        assert first is not None  # every encoding can read what it was trained on
        change = None if last is None else last / first - 1
        end = f"{'' if change is None else percent(change, w):>9}  {w(kind_of(change))}" if len(bits) > 1 else ""
        return self._line(_name(measured.trial, self.settings), cells) + end

    def taken(self, labels: Iterable[str]) -> str:
        """What an earlier call has finished."""
        return self.w("taken", folder=self.lab.folder, names=list_encodings(labels, self.w))

    def _line(self, label: str, cells: Sequence[str]) -> str:
        return "  ".join([label.ljust(self.labels), *map(str.rjust, cells, self.widths)])


def _name(trial: Trial, settings: LabSettings) -> str:
    return trial.label if settings.seeds == 1 else f"{trial.label} {trial.seed}"


__all__ = ["LiveTable"]
