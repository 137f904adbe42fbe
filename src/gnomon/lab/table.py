"""The result as text for a terminal: columns of numbers, and below them what they say."""

import textwrap
from collections.abc import Sequence

from gnomon.glossary import grouped
from gnomon.lab.analysis import Row, holds_until
from gnomon.lab.reading import percent, percents, summary, whole
from gnomon.lab.report import Report

WIDTH = 100  # of the sentences
CODES = {"flat": "32", "rises": "33", "breaks": "31", "n/a": "2"}  # of ANSI colours

Cells = Sequence[str]


def written(report: Report, colour: bool = False) -> str:
    """Both tables, the order and the summary."""
    L, longest = report.settings.train_length, report.settings.lengths[-1]
    t = report.targets
    title = (
        f"Bits per byte of the same {grouped(t['tokens'])} tokens at the end of {t['documents']} held-out documents,"
    )
    parts = [
        _bold(title, colour),
        f"given only the last n tokens in front of each. Trained on windows of {L}; lower is better.",
        "",
        *_lined(_bits(report), colour, [row.kind for row in sorted_rows(report)]),
        f"byte trigram  {report.trigram.value:.3f}   fitted on the whole training text",
        "",
        _bold("What position costs and how far it carries", colour),
        "",
        *_lined(costs(report), colour),
        "",
        *(line for text in summary(report) for line in textwrap.wrap(text, WIDTH, subsequent_indent="  ")),
    ]
    if longest > L:
        note = (
            f"The first column is also what cropping gives at any length: a model that sees the last {L} tokens only. "
            "Intervals: 95 %, paired bootstrap over documents. ≈ joins neighbours that they do not tell apart."
        )
        parts += ["", *textwrap.wrap(note, WIDTH)]
    return "\n".join(parts)


def sorted_rows(report: Report) -> list[Row]:
    """Rows as tables show them: the best at the longest length first, those without a number there last."""
    places = [place.label for place in report.ranking[-1]]
    return sorted(report.rows, key=lambda row: places.index(row.label) if row.label in places else len(places))


def _bits(report: Report) -> list[Cells]:
    """Bits per byte by length."""
    L, lengths = report.settings.train_length, report.settings.lengths
    far = [f"{lengths[-1]} against cropping to {L}", ""] if len(lengths) > 1 else []
    head = ["", *(f"n = {n}" if n == L else str(n) for n in lengths), *far]
    times = ["", *(f"{n / L:g}×" for n in lengths), *(["", ""] if far else [])]
    return [head, times, *(_bits_of(row, bool(far)) for row in sorted_rows(report))]


def _bits_of(row: Row, far: bool) -> Cells:
    bits = ["n/a" if x is None else f"{x.value:.3f}" for x in row.bits]
    last = row.increase[-1]
    return [row.label, *bits, *([("" if last is None else percents(last)), row.kind] if far else [])]


def costs(report: Report) -> list[Cells]:
    """Parameters, time, and what else tells encodings apart (S7)."""
    s = report.settings
    L, longest = s.train_length, s.lengths[-1]
    cheapest = min(row.step_cpu_seconds for row in report.rows)
    head = ["", "parameters", "time", "on a trigram", f"moved to {longest - L}", f"beyond {L}", "holds to"]
    if longest == L:
        head = head[:4]
    cells = [
        [
            row.label,
            grouped(row.position_parameters),
            f"{row.step_cpu_seconds / cheapest:.2f}×",
            percent(report.margins[row.label].value),
            "n/a" if row.shifted is None else percent(row.shifted.value),
            "n/a" if row.far is None else whole(row.far),
            _held(report, row),
        ][: len(head)]
        for row in sorted_rows(report)
    ]
    return [head, *cells]


def _held(report: Report, row: Row) -> str:
    if row.increase[-1] is None:
        return f"{row.reach} (its end)"
    until = holds_until(row, report.edges, report.settings.train_length)
    return str(report.settings.lengths[-1]) if until is None else str(until)


def _lined(cells: Sequence[Cells], colour: bool, kinds: Sequence[str] = ()) -> list[str]:
    """Cells in columns, the first to the left, the others to the right; a line under the head."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in cells]
    heads = len(cells) - len(kinds) if kinds else 1
    rule = "─" * max(map(len, lines))
    body = lines[heads:]
    if kinds and colour:
        body = [f"\033[{CODES[kind]}m{line}\033[0m" for line, kind in zip(body, kinds, strict=True)]
    return [*(_bold(line, colour) for line in lines[:heads]), rule, *body]


def _bold(text: str, colour: bool) -> str:
    return f"\033[1m{text}\033[0m" if colour else text


__all__ = ["costs", "sorted_rows", "written"]
