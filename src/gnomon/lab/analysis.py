"""From what was measured to what it says: bits per byte with intervals, a kind of curve, an order of encodings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import log
from typing import Literal

import numpy as np

from gnomon.lab.bootstrap import Bootstrap, Interval
from gnomon.lab.protocols import Floats
from gnomon.lab.published import CURVES
from gnomon.lab.seeds import median
from gnomon.lab.settings import LabSettings, Trial, parse_list
from gnomon.lab.trial import TrialResult

WORTH = -0.1  # over the trigram's bits: a model above it has learned too little to compare encodings by
FLAT, BREAKS = 0.05, 0.20  # relative increase: up to FLAT a curve is flat, from BREAKS on it is broken
Kind = Literal["flat", "rises", "breaks", "n/a"]


@dataclass(frozen=True)
class EncodingResult:
    """What was found out about one encoding, all seeds together.

    bits       bits per byte of the targets at each length; None where the encoding has no meaning
    others     the same by other protocols, by name; they score other tokens, so they compare with each other only
    trained_at the same of models trained at that length on as many tokens, where the settings asked for them
    increase   of these over the first, as a share
    shifted    the same as `increase`, for the training length placed at the end of the longest context
    far        at the longest length, the share of attention that goes farther back than training's windows reached
    nats       (documents,) paid for the targets at each length
    by_seed    bits of each seed, at each length
    median     of those at each length, with its interval over seeds
    growth     median over seeds of the increase to the longest length, with its interval over seeds
    learned    of each seed, whether its bits at the training length are 10 % or more below the trigram's
    others_by_seed, trained_at_by_seed   as others and trained_at, of each seed
    by_position  bits per byte in each bucket of positions (see the report's `edges`), in windows of the longest length
    curve      the same over the bits that the byte trigram pays for the same text, which is easier in some places
    reach      the last position that the encoding has, up to the longest length
    step_bytes what a training step holds
    """

    label: str
    name: str
    relative: bool
    extrapolation: str
    paper: str
    parameters: int
    position_parameters: int
    bits: list[Interval | None]
    increase: list[Interval | None]
    shifted: Interval | None
    far: float | None
    nats: list[Floats | None]
    by_seed: list[list[float | None]]
    median: list[Interval | None]
    growth: Interval | None
    learned: list[bool]
    others_by_seed: dict[str, list[list[float | None]]]
    trained_at_by_seed: list[list[float | None]]
    others: dict[str, list[Interval | None]]
    trained_at: list[Interval | None]
    curve: list[float | None]
    by_position: list[float | None]
    reach: int
    train_loss: float
    tokens_per_second: float
    step_cpu_seconds: float
    step_bytes: int
    seconds: float

    @property
    def kind(self) -> Kind:
        """How the curve goes up to the longest length."""
        return kind_of(None if self.increase[-1] is None else self.increase[-1].value)

    @property
    def passed(self) -> int:
        """How many seeds learned enough to be compared: the pass rate within training's lengths."""
        return sum(self.learned)

    @property
    def fit(self) -> Interval:
        """Bits per byte at the training length."""
        assert self.bits[0] is not None
        return self.bits[0]


def kind_of(increase: float | None) -> Kind:
    """The word for a relative increase."""
    if increase is None:
        return "n/a"
    return "flat" if increase <= FLAT else "rises" if increase < BREAKS else "breaks"


def published_kind(name: str, factor: float) -> Kind | None:
    """The word for what was published about an encoding near a multiple of the training length, if we know of any."""
    if name == "learned":
        return "n/a"
    return kind_of(CURVES[name].nearest(factor)[1]) if name in CURVES else None


@dataclass(frozen=True)
class Swept:
    """A learning rate of the sweep: bits at the training length after a shorter training; None where it overflowed."""

    position: str
    rate: float
    bits: float | None
    chosen: bool


@dataclass(frozen=True)
class Measured:
    """All results of a panel: its trials, the same trained at multiples of its length, and the sweep of rates."""

    trials: Sequence[TrialResult]
    baselines: Mapping[tuple[Trial, int], TrialResult] = field(default_factory=dict)
    sweep: Sequence[Swept] = ()


@dataclass(frozen=True)
class Scale:
    """What rows are measured by.

    bootstrap  draws of documents, by protocol
    guess      bits of the trigram for the targets
    edges      of buckets of positions
    n_bytes    (longest,) bytes at each position, all windows together; trigram: nats that it pays for them
    """

    bootstrap: Mapping[str, Bootstrap]
    guess: float
    edges: Sequence[int]
    n_bytes: Floats
    trigram: Floats


def rows(measured: Measured, settings: LabSettings, scale: Scale) -> list[EncodingResult]:
    """One row per encoding, in the order of the trials."""
    labels = dict.fromkeys(m.trial.label for m in measured.trials)
    return [_with_baselines(_row(_of(measured, label), settings, scale), measured, settings, scale) for label in labels]


def _of(measured: Measured, label: str) -> list[TrialResult]:
    return [m for m in measured.trials if m.trial.label == label]


def _with_baselines(row: EncodingResult, measured: Measured, settings: LabSettings, scale: Scale) -> EncodingResult:
    """The row with what models trained at its longer lengths pay, each seed and all together."""
    bootstrap, columns = scale.bootstrap["fixed"], []
    for n in settings.lengths:
        found = [measured.baselines.get((m.trial, n // settings.train_length)) for m in _of(measured, row.label)]
        columns.append([None if m is None else m.measurements.nats[0] for m in found])
    together = [mean(column) for column in columns]
    return replace(
        row,
        trained_at=[None if nats is None else bootstrap.bits_per_byte(nats) for nats in together],
        trained_at_by_seed=[[_bits(bootstrap, nats) for nats in seed] for seed in zip(*columns, strict=True)],
    )


def _row(seeds: Sequence[TrialResult], settings: LabSettings, scale: Scale) -> EncodingResult:
    bootstrap = scale.bootstrap["fixed"]
    by_seed = [[_bits(bootstrap, x) for x in m.measurements.nats] for m in seeds]
    first, specs = seeds[0], parse_list(seeds[0].trial.position)
    classes = list(dict.fromkeys(spec.cls for spec in specs))
    alone = len(classes) == 1 and specs[0].positions is None  # what the literature expects is of encodings alone
    nats = [mean([m.measurements.nats[i] for m in seeds]) for i in range(len(settings.lengths))]
    start, shifted = nats[0], mean([m.measurements.shifted for m in seeds])
    assert start is not None
    by_position = mean([m.measurements.by_position for m in seeds])
    assert by_position is not None
    tokens, seconds = sum(m.tokens for m in seeds), sum(m.train_seconds for m in seeds)
    return EncodingResult(
        label=first.trial.label,
        name=classes[0].name if alone else first.trial.label,
        relative=all(cls.relative for cls in classes),
        extrapolation=classes[0].extrapolation if alone else "",
        paper="; ".join(cls.paper for cls in classes),
        parameters=first.parameters,
        position_parameters=first.position_parameters,
        bits=[None if x is None else bootstrap.bits_per_byte(x) for x in nats],
        increase=[None if x is None else bootstrap.increase(x, start) for x in nats],
        shifted=None if shifted is None else bootstrap.increase(shifted, start),
        far=None if first.measurements.far is None else float(np.mean([m.measurements.far or 0.0 for m in seeds])),
        nats=nats,
        by_seed=by_seed,
        median=[_median(column) for column in zip(*by_seed, strict=True)],
        growth=_median([None if bits[-1] is None else bits[-1] / (bits[0] or 1.0) - 1 for bits in by_seed]),
        learned=[(bits[0] or 0.0) / scale.guess - 1 <= WORTH for bits in by_seed],
        others_by_seed={
            name: [[_bits(scale.bootstrap[name], x) for x in m.measurements.others[name]] for m in seeds]
            for name in first.measurements.others
        },
        trained_at_by_seed=[],
        others={name: _by_protocol(seeds, name, scale.bootstrap[name]) for name in first.measurements.others},
        trained_at=[],
        by_position=bits_by_bucket(by_position, scale.n_bytes * log(2), scale.edges),
        curve=bits_by_bucket(by_position, scale.trigram, scale.edges),
        reach=len(by_position),
        train_loss=float(np.mean([m.losses[-1][1] for m in seeds])),
        tokens_per_second=tokens / seconds,
        step_cpu_seconds=float(np.mean([m.step_cpu_seconds for m in seeds])),
        step_bytes=first.step_bytes,
        seconds=seconds + sum(m.measure_seconds for m in seeds),
    )


def _median(values: Sequence[float | None]) -> Interval | None:
    """Over seeds; None where the quantity has no meaning."""
    given = [value for value in values if value is not None]
    return median(given) if len(given) == len(values) else None


def _by_protocol(seeds: Sequence[TrialResult], name: str, bootstrap: Bootstrap) -> list[Interval | None]:
    columns = zip(*(m.measurements.others[name] for m in seeds), strict=True)
    return [None if nats is None else bootstrap.bits_per_byte(nats) for nats in map(mean, columns)]


def _bits(bootstrap: Bootstrap, nats: list[float] | None) -> float | None:
    return None if nats is None else bootstrap.bits_per_byte(np.array(nats)).value


def mean(seeds: Sequence[list[float] | None]) -> Floats | None:
    """The mean over seeds; None where the quantity has no meaning."""
    given = [np.array(x) for x in seeds if x is not None]
    return np.mean(given, axis=0) if given else None


# ------------------------------------------------------------------ by position


def buckets(longest: int) -> list[int]:
    """Edges of buckets of positions, two to each doubling: 0, 1, 2, 3, 4, 6, 8, 11, 16, ... longest."""
    halves = range(2 * longest.bit_length() + 1)
    return sorted({0, longest, *(round(2 ** (k / 2)) for k in halves if 2 ** (k / 2) < longest)})


def bits_by_bucket(nats: Floats, others: Floats, edges: Sequence[int]) -> list[float | None]:
    """nats over others, summed in each bucket of positions; None past the last position of nats."""
    return [float(nats[a:b].sum() / others[a:b].sum()) if b <= len(nats) else None for a, b in pairwise(edges)]


def holds_until(row: EncodingResult, edges: Sequence[int], train_length: int) -> int | None:
    """Up to which position the loss stays within FLAT of that at the end of training's windows; None: to the end.

    Losses are taken over the trigram's, so that easier or harder text at some positions does not matter.
    """
    ends = edges[1:]
    inside = [c for c, end in zip(row.curve, ends, strict=True) if c is not None and end <= train_length]
    if not inside:
        return None
    limit = inside[-1] * (1 + FLAT)
    for c, start, end in zip(row.curve, edges, ends, strict=False):
        if end > train_length and c is not None and c > limit:
            return max(start, train_length)
    return None


# ------------------------------------------------------------------ order


def order(found: Sequence[EncodingResult], at: int) -> list[EncodingResult]:
    """The rows that have a number at length index `at`, the best first."""
    return sorted((row for row in found if row.bits[at] is not None), key=lambda row: _value(row, at))


def _value(row: EncodingResult, at: int) -> float:
    bits = row.bits[at]
    assert bits is not None
    return bits.value


__all__ = [
    "BREAKS",
    "FLAT",
    "WORTH",
    "EncodingResult",
    "Kind",
    "Measured",
    "Swept",
    "bits_by_bucket",
    "buckets",
    "holds_until",
    "kind_of",
    "mean",
    "order",
    "published_kind",
    "rows",
]
