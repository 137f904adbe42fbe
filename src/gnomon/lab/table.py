"""The result as text for a terminal: columns of numbers, and below them what they say."""

import textwrap
from collections.abc import Sequence

from gnomon.glossary import grouped
from gnomon.lab.analysis import FLAT, Row, holds_until
from gnomon.lab.reading import percent, percents, summary, whole
from gnomon.lab.report import Report

WIDTH = 100  # of the sentences
CODES = {"flat": "32", "rises": "33", "breaks": "31", "n/a": "2"}  # of ANSI colours

Cells = Sequence[str]


def written(report: Report, colour: bool = False) -> str:
    """Both tables, the order and the summary."""
    L, t = report.settings.train_length, report.targets
    title = (
        f"Bits per byte of the same {grouped(t['tokens'])} tokens at the end of {t['documents']} held-out documents,"
    )
    parts = [
        _bold(title, colour),
        f"given only the last n tokens in front of each. Trained on windows of {L}; lower is better.",
        "",
        *_lined(_bits(report), 2, colour, [row.kind for row in report.sorted_rows()]),
        "",
        _bold("What position costs and how far it carries", colour),
        "",
        *_lined(costs(report), 1, colour),
        "",
        *(line for text in summary(report) for line in textwrap.wrap(text, WIDTH, subsequent_indent="  ")),
    ]
    return "\n".join([*parts, "", *textwrap.wrap(_legend(report), WIDTH)])


def _legend(report: Report) -> str:
    """What the columns mean, for those who want to know."""
    L, longest = report.settings.train_length, report.settings.lengths[-1]
    own = "Parameters: position's own. Time: of a training step. Trigram: of bytes, fitted on the whole training text."
    far = (
        f"Against cropping: over the first column, which is what a model gets that sees the last {L} tokens only, with "
        "its 95 % interval by a paired bootstrap over documents; ≈ joins neighbours that these do not tell apart. "
        f"Moved: the same {L} tokens at positions {longest - L} to {longest - 1}. Beyond: attention that goes farther "
        f"back than {L}, given {longest}. Holds to: loss by position within {whole(FLAT)} of that at position {L}."
    )
    return f"{far} {own}" if longest > L else own


def _bits(report: Report) -> list[Cells]:
    """Bits per byte by length."""
    L, lengths = report.settings.train_length, report.settings.lengths
    far = [f"{lengths[-1]} against cropping to {L}", ""] if len(lengths) > 1 else []
    head = ["", *(f"n = {n}" if n == L else str(n) for n in lengths), *far]
    times = ["", *(f"{n / L:g}×" for n in lengths), *(["", ""] if far else [])]
    trigram = ["byte trigram", *[f"{report.trigram.value:.3f}"] * len(lengths), *[""] * len(far)]
    return [head, times, *(_bits_of(row, bool(far)) for row in report.sorted_rows()), trigram]


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
        for row in report.sorted_rows()
    ]
    return [head, *cells]


def _held(report: Report, row: Row) -> str:
    if row.increase[-1] is None:
        return f"{row.reach} (its end)"
    until = holds_until(row, report.edges, report.settings.train_length)
    return str(report.settings.lengths[-1]) if until is None else str(until)


def _lined(cells: Sequence[Cells], heads: int, colour: bool, kinds: Sequence[str] = ()) -> list[str]:
    """Cells in columns, the first to the left, the others to the right, a line under the heads; rows in colours."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in cells]
    rule = "─" * max(map(len, lines))
    head, body = lines[:heads], lines[heads:]
    if colour:
        body = [f"\033[{CODES[k]}m{line}\033[0m" for k, line in zip(kinds, body, strict=False)] + body[len(kinds) :]
    return [*(_bold(line, colour) for line in head), rule, *body]


def _bold(text: str, colour: bool) -> str:
    return f"\033[1m{text}\033[0m" if colour else text


__all__ = ["costs", "written"]
