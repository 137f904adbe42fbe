"""How sure a result is, as tables: every seed, the other protocols, models trained longer, the sweep of rates."""

from collections.abc import Iterator

from gnomon.glossary import Words, words
from gnomon.lab.analysis import WORTH, EncodingResult
from gnomon.lab.bootstrap import Interval
from gnomon.lab.report import SEEDS_OF_A_CLAIM, LabReport
from gnomon.lab.seeds import DRAWS
from gnomon.lab.summary import list_encodings, percents, whole_percent

Cells = list[list[str]]
Table = tuple[str, Cells, list[str]]  # its title, head and rows, and notes below it


def tables(report: LabReport, w: Words) -> Iterator[Table]:
    """All of them that the experiment has. `w`: of the glossary's group `grid`."""
    if report.settings.seeds > 1:
        yield _seeds(report, w)
    yield from _baselines(report, w)
    for name in report.rows[0].others:
        yield _protocol(report, name, w)
    if report.sweep:
        yield _sweep(report, w)


def claims(report: LabReport, w: Words) -> list[str]:
    """What keeps an order from being one of encodings, and what was left out."""
    lines = []
    if report.settings.seeds < SEEDS_OF_A_CLAIM:
        lines.append(w("few_seeds", seeds=report.settings.seeds, least=SEEDS_OF_A_CLAIM))
    if report.left_out:
        lines.append(w("left_out", what="; ".join(w(key, **fields) for key, fields in report.left_out)))
    return lines


def _seeds(report: LabReport, w: Words) -> Table:
    L, longest = report.settings.lengths[0], report.settings.lengths[-1]
    head = ["", w("passed"), w("median_at", n=L), w("median_at", n=longest), w("growth"), w("each_seed", n=longest)]
    rows = [
        [
            row.label,
            f"{row.passed}/{len(row.by_seed)}",
            _within(row.median[0], w),
            _within(row.median[-1], w),
            "" if row.growth is None else percents(row.growth, w),
            " ".join("–" if bits[-1] is None else w.number(bits[-1], ".3f") for bits in row.by_seed),
        ]
        for row in report.sorted_rows()
    ]
    note = w("seeds_note", worth=whole_percent(-WORTH), draws=DRAWS)
    return w("seeds_title", trained=L, longest=longest), [head, *rows], [note]


def _within(x: Interval | None, w: Words) -> str:
    if x is None:
        return "–"
    between = ", " if w.lang == "en" else "; "
    return f"{w.number(x.value, '.3f')} [{w.number(x.low, '.3f')}{between}{w.number(x.high, '.3f')}]"


def _baselines(report: LabReport, w: Words) -> Iterator[Table]:
    """A table for each length that models were trained at too."""
    L = report.settings.train_length
    for at, n in enumerate(report.settings.lengths):
        if all(row.trained_at[at] is None for row in report.rows):
            continue
        head = ["", w("cropped"), w("read_on"), w("trained_there"), w("verdict")]
        rows = [
            [row.label, *(_bits(x, w) for x in (row.bits[0], row.bits[at], row.trained_at[at])), _use(row, at, w)]
            for row in report.sorted_rows()
        ]
        yield w("baseline_title", n=n, trained=L), [head, *rows], []


def _use(row: EncodingResult, at: int, w: Words) -> str:
    """Better than cropped, no worse, or worse, as far as the documents settle it."""
    change = row.increase[at]
    if change is None:
        return "–"
    return w("uses" if change.high < 0 else "loses" if change.low > 0 else "extrapolates")


def _bits(x: Interval | None, w: Words) -> str:
    return "–" if x is None else w.number(x.value, ".3f")


def _protocol(report: LabReport, name: str, w: Words) -> Table:
    head = ["", *(w.number(n) for n in report.settings.lengths)]
    rows = [[row.label, *(_bits(x, w) for x in row.others[name])] for row in report.sorted_rows()]
    return w(name), [head, *rows], []


def _sweep(report: LabReport, w: Words) -> Table:
    s = report.settings
    rates = sorted({swept.rate for swept in report.sweep})
    head = ["", *(w.number(rate, "g") for rate in rates)]
    found = {(swept.position, swept.rate): swept for swept in report.sweep}
    positions = list(dict.fromkeys(swept.position for swept in report.sweep))
    rows = []
    for position in positions:
        mine = [found[position, rate] for rate in rates]
        rows.append(
            [position, *((w("overflow") if x.bits is None else w.number(x.bits, ".3f")) + "*" * x.chosen for x in mine)]
        )
    edge = [x.position for x in report.sweep if x.chosen and len(rates) > 1 and x.rate in (rates[0], rates[-1])]
    notes = [w("sweep_note"), *([w("sweep_edge", names=list_encodings(edge, words("lab", w.lang)))] if edge else [])]
    steps = s.sweep_steps or max(1, s.train.steps // 3)
    return w("sweep_title", trained=s.train_length, steps=steps), [head, *rows], notes


__all__ = ["Table", "claims", "tables"]
