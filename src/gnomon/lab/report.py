"""LabReport: what an experiment found, as an object that prints, draws and saves itself."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import log
from pathlib import Path
from typing import Any

from gnomon.data import atomic
from gnomon.lab.analysis import (
    EncodingResult,
    Measured,
    Scale,
    Swept,
    buckets,
    holds_until,
    order,
    published_kind,
    rows,
)
from gnomon.lab.bootstrap import FEW, Bootstrap, Interval
from gnomon.lab.protocols import Floats, Targets
from gnomon.lab.seeds import above
from gnomon.lab.settings import PROTOCOLS, LabSettings
from gnomon.lab.trial import TrialResult

FORMAT = 1  # of report.json; goes up when a key changes its meaning or leaves


#: file beside report.json -> the function from a report and a language to its bytes; `outputs` fills it, so that a
#: report imports none of them
WRITERS: dict[str, Callable[..., bytes]] = {}


SEEDS_OF_A_CLAIM = 5  # fewer say something of these models, not of the encodings


@dataclass(frozen=True)
class Place:
    """One encoding in an order from best to worst. `sure`: the next one is worse in 95 % of the draws of documents, and
    with five seeds or more in 95 % of the draws of seeds too."""

    label: str
    sure: bool


@dataclass(frozen=True)
class TextSample:
    """What a model wrote after a prompt."""

    label: str
    prompt: str
    text: str


@dataclass(frozen=True)
class LabReport:
    """The result of an experiment. Lengths are in tokens, bits are bits per byte of the targets.

    sweep       the learning rates that were tried, if there was a sweep
    trigram     bits of a byte trigram fitted on the whole training text
    margins     of each row over the trigram, at the training length: -0.2 is a fifth below it
    ranking     per length, the encodings from best to worst
    edges       of the buckets of positions that the rows' curves are over
    same_start  whether all models of a seed began with the same weights but for position
    about       text, machine, times
    left_out    what a budget had no time for: keys of the glossary's group `grid`, and their fields
    """

    settings: LabSettings
    rows: tuple[EncodingResult, ...]
    trigram: Interval
    margins: dict[str, Interval]
    ranking: tuple[tuple[Place, ...], ...]
    targets: dict[str, int]
    edges: tuple[int, ...]
    same_start: bool
    about: dict[str, Any]
    sample: TextSample | None = None
    sweep: tuple[Swept, ...] = ()
    left_out: tuple[tuple[str, dict[str, Any]], ...] = ()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Plain rows, so that `pandas.DataFrame(report)` is a table; see `records`."""
        return iter(json.loads(WRITERS["records.json"](self)))

    def row(self, label: str) -> EncodingResult:
        """The row of an encoding."""
        return next(row for row in self.rows if row.label == label)

    @property
    def best(self) -> EncodingResult:
        """The row with the lowest bits at the longest length."""
        return self.row(self.ranking[-1][0].label if self.ranking[-1] else self.ranking[0][0].label)

    @property
    def seed(self) -> int:
        """The first seed."""
        return self.settings.seed

    @property
    def few(self) -> bool:
        """Whether there are too few documents to settle an order."""
        return self.targets["documents"] < FEW

    def sorted_rows(self) -> list[EncodingResult]:
        """Rows as tables show them: the best at the longest length first, those without a number there last."""
        places = [place.label for place in self.ranking[-1]]
        return sorted(self.rows, key=lambda row: places.index(row.label) if row.label in places else len(places))

    def table(self, colour: bool = False, lang: str = "en") -> str:
        """The result as text for a terminal, in English, Spanish or Portuguese."""
        return WRITERS["table.txt"](self, lang=lang, colour=colour).decode().removesuffix("\n")

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON-ready data."""
        plain = {
            "format": FORMAT,
            "lengths": self.settings.lengths,
            **asdict(self),
            "settings": self.settings.to_dict(),
            "rows": [self._row(row) for row in self.rows],
        }
        return json.loads(json.dumps(plain, default=_as_lists))

    def _row(self, row: EncodingResult) -> dict[str, Any]:
        longest = self.settings.lengths[-1]
        return {
            **asdict(row),
            "cropped": row.fit.value,
            "kind": row.kind,
            "published_kind": published_kind(row.name, longest / self.settings.train_length),
            "holds_until": holds_until(row, self.edges, self.settings.train_length),
        }

    def to_json(self) -> str:
        """Everything as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def save(self, folder: str | Path, lang: str = "en") -> list[Path]:
        """Write report.json, results.csv, table.txt, table.tex, extrapolation and by_position as .png and .svg, and
        report.html, each whole or not at all.

        The page needs no other file and asks no other machine for anything. report.json is the same in every language.
        """
        files = {
            "report.json": (self.to_json() + "\n").encode(),
            **{name: written(self, lang=lang) for name, written in WRITERS.items() if name != "records.json"},
        }
        for name, content in files.items():
            with atomic(Path(folder) / name) as file:
                file.write(content)
        return [Path(folder) / name for name in files]


def _as_lists(value: Any) -> Any:
    """What asdict leaves: arrays."""
    return value.tolist()


def make_report(
    settings: LabSettings, measured: Measured, targets: Targets, trigram: Floats, about: dict[str, Any]
) -> LabReport:
    """Work out what was measured means. trigram (blocks, longest): nats it pays for each token of the windows."""
    by_protocol = {name: Bootstrap(targets.bytes_by(name)) for name in PROTOCOLS}
    bootstrap = by_protocol["fixed"]
    edges = buckets(settings.lengths[-1])
    guess = targets.of(trigram)
    floor = bootstrap.bits_per_byte(guess)
    scale = Scale(by_protocol, floor.value, edges, targets.n_bytes.sum(0), trigram.sum(0))
    found = rows(measured, settings, scale)
    trials = measured.trials
    return LabReport(
        settings=settings,
        rows=tuple(found),
        trigram=floor,
        sweep=tuple(measured.sweep),
        margins={row.label: bootstrap.increase(_nats(row, 0), guess) for row in found},
        ranking=tuple(_places(found, at, bootstrap) for at in range(len(settings.lengths))),
        targets={
            "documents": targets.n_documents,
            "blocks": len(targets.windows),
            "tokens": targets.n_tokens,
            "bytes": int(targets.bytes_of_documents.sum()),
            "tokens in a block": targets.n,
        },
        edges=tuple(edges),
        same_start=all(len({m.first for m in trials if m.trial.seed == seed}) == 1 for seed in _seeds(trials)),
        about=about,
    )


def _seeds(measured: Sequence[TrialResult]) -> set[int]:
    return {m.trial.seed for m in measured}


def _places(found: Sequence[EncodingResult], at: int, bootstrap: Bootstrap) -> tuple[Place, ...]:
    ranked = order(found, at)
    sure = [
        bootstrap.sure(_nats(better, at), _nats(worse, at)) and _sure_over_seeds(better, worse, at)
        for better, worse in pairwise(ranked)
    ]
    return tuple(Place(row.label, fact) for row, fact in zip(ranked, [*sure, True][: len(ranked)], strict=True))


def _sure_over_seeds(better: EncodingResult, worse: EncodingResult, at: int) -> bool:
    """Whether draws of seeds settle it too, where there are enough of them to draw from."""
    if len(better.by_seed) < SEEDS_OF_A_CLAIM:
        return True
    pairs = zip(better.by_seed, worse.by_seed, strict=True)
    drawn = [(b[at], w[at]) for b, w in pairs]
    one, other = ([pair[i] or 0.0 for pair in drawn] for i in (0, 1))
    return above(other, one).low > 0


def bits_of_targets(targets: Targets, nats: Sequence[float] | None) -> float | None:
    """Bits per byte of nats for each document's targets."""
    return None if nats is None else sum(nats) / (float(targets.bytes_of_documents.sum()) * log(2))


def _nats(row: EncodingResult, at: int) -> Floats:
    nats = row.nats[at]
    assert nats is not None
    return nats


__all__ = ["WRITERS", "LabReport", "Measured", "Place", "Swept", "TextSample", "bits_of_targets", "make_report"]
