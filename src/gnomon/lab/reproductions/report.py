"""`gn.lab.reproduce(name)`: the cells of a reproduction computed, and what they say."""

import datetime
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnomon.errors import BadValue
from gnomon.glossary import Words, words
from gnomon.lab.bootstrap import Interval
from gnomon.lab.exact.report import aligned, computed
from gnomon.lab.executors import Watch
from gnomon.lab.machine import machine
from gnomon.lab.reproductions.catalogue import reproduction
from gnomon.lab.reproductions.frame import Measured, Outcome, Pair, Reproduction, outcome


@dataclass(frozen=True)
class ReproductionReport:
    """Published numbers, ours, how their orders agree, and the verdict."""

    reproduction: Reproduction
    outcome: Outcome
    seeds: int
    cpu_seconds: float
    about: dict[str, Any]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A plain table: one row for each condition, column and seed."""
        r = self.reproduction
        return [
            {
                "condition": m.condition.label,
                "published_at": r.columns[i],
                "published": m.condition.published[i],
                "at": r.ours[i],
                "seed": seed,
                "ours": value,
                "learned": m.learned[seed],
            }
            for m in self.outcome.measured
            for i, values in enumerate(m.numbers)
            for seed, value in enumerate(values)
        ]

    def table(self, lang: str = "en") -> str:
        """As text."""
        return "\n".join(_written(self, words("reproduce", lang)))

    def to_dict(self) -> dict[str, Any]:
        """As plain data for JSON."""
        r = self.reproduction
        return {
            "name": r.name,
            "source": r.source,
            "published_checked": r.checked,
            "columns": r.columns,
            "ours_at": r.ours,
            "seeds": self.seeds,
            "cpu_seconds": self.cpu_seconds,
            **self.about,
            **self.outcome.to_dict(),
            "verdict_in_words": list(_verdict(self, words("reproduce"))),
        }


def reproduce(
    name: str,
    *,
    seeds: int | None = None,
    folder: str | Path | None = None,
    workers: int | None = None,
    executor: str = "processes",
    watch: Watch | None = None,
) -> ReproductionReport:
    """Repeat a published comparison at a size that takes minutes.

    name    alibi-table-2, kazemnejad-copy, huang-unique-copy, randpos-reverse or yarn-zero-shot
    seeds   models of each kind, default 5; fewer settle nothing
    folder  keeps the results of all models: what is there is not computed again
    """
    r = reproduction(name)
    many = r.seeds if seeds is None else seeds
    if many < 1:
        raise BadValue(f"seeds must be at least 1, got {many}")
    began = time.perf_counter()
    results = computed(r.cells(many), folder, workers, executor, watch)
    spent = sum(result["cpu_seconds"] for result in results.values())
    about = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine(),
        "seconds": round(time.perf_counter() - began),
    }
    found = outcome(r, lambda cell: results[cell.key], many)
    return ReproductionReport(r, found, many, round(spent), about)


# ------------------------------------------------------------------ as text


def _written(report: ReproductionReport, w: Words) -> Iterator[str]:
    r = report.reproduction
    yield w("title", name=r.name, source=r.source)
    if not r.checked:
        yield w("unchecked")
    yield w(f"about_{r.name}")
    yield ""
    yield w("published_ranks" if r.ranks else "published")
    yield from aligned([["", *r.columns], *([m.condition.label, *_numbers(m, r, w)] for m in report.outcome.measured)])
    yield ""
    yield w("ours", seeds=report.seeds)
    seen = list(dict.fromkeys(r.ours))
    rows = [
        [m.condition.label, *_medians(m, r, seen, w), f"{sum(m.learned)}/{len(m.learned)}"]
        for m in report.outcome.measured
    ]
    yield from aligned([["", *seen, w("learned")], *rows])
    yield ""
    for column in {r.ours[i]: i for i in r.ranked}.values():
        yield w("by_seed", at=r.ours[column])
        for m in report.outcome.measured:
            values = (w("none") if x is None else _number(x, r, w) for x in m.numbers[column])
            yield f"  {m.condition.label}: " + "  ".join(values)
    yield ""
    yield from _verdict(report, w)
    yield w("tried", tried=w(f"tried_{r.name}"))
    about = report.about
    yield w(
        "cost",
        seconds=report.cpu_seconds,
        processor=str(about["machine"]["processor"]),
        torch=str(about["machine"]["torch"]),
        date=about["date"],
    )


def _numbers(m: Measured, r: Reproduction, w: Words) -> list[str]:
    return [
        w("none") if x is None else w.number(x, "g") if r.ranks else _number(x, r, w) for x in m.condition.published
    ]


def _number(x: float, r: Reproduction, w: Words) -> str:
    return w.number(x, ".2f" if r.higher or x < 1000 else ".0f")


def _medians(m: Measured, r: Reproduction, seen: list[str], w: Words) -> list[str]:
    cells = []
    for at in seen:
        found = m.median(r.ours.index(at))
        cells.append(w("none") if found is None else _interval(found, r, w))
    return cells


def _interval(x: Interval, r: Reproduction, w: Words) -> str:
    comma = ", " if w.lang == "en" else "; "
    return f"{_number(x.value, r, w)} [{_number(x.low, r, w)}{comma}{_number(x.high, r, w)}]"


def _verdict(report: ReproductionReport, w: Words) -> Iterator[str]:
    found = report.outcome
    for m in found.measured:
        if not m.judged:
            yield w("left_out", label=m.condition.label, learned=sum(m.learned), seeds=len(m.learned))
    if found.tau is not None:
        comma = ", " if w.lang == "en" else "; "
        low, high = (w.number(x, ".2f") for x in (found.tau.low, found.tau.high))
        yield w("tau", tau=w.number(found.tau.value, ".2f"), interval=f"[{low}{comma}{high}]")
    yield w(
        f"verdict_{found.verdict}",
        seeds=report.seeds,
        pairs=len(found.pairs),
        hold=sum(p.holds == "holds" for p in found.pairs),
    )
    for holds in ("holds", "reversed", "undecided"):
        pairs = [pair for pair in found.pairs if pair.holds == holds]
        if pairs:
            yield w(holds, pairs=_listed(pairs, report.reproduction, w))
    if report.seeds < 5:
        yield w("few_seeds", seeds=report.seeds)


def _listed(pairs: list[Pair], r: Reproduction, w: Words) -> str:
    key = "over" if len(r.ranked) == 1 else "over_at"
    return "; ".join(w(key, better=pair.better, worse=pair.worse, at=pair.at) for pair in pairs)


__all__ = ["ReproductionReport", "reproduce"]
