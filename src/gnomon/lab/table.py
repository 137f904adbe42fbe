"""The result as text for a terminal: columns of numbers, and below them what they say."""

import textwrap
from collections.abc import Iterator, Sequence

from gnomon.glossary import Words, words
from gnomon.lab.analysis import FLAT, EncodingResult, holds_until
from gnomon.lab.evidence import claims, tables
from gnomon.lab.report import LabReport
from gnomon.lab.summary import ENGLISH, percent, percents, summary, whole_percent

WIDTH = 100  # of the sentences
CODES = {"flat": "32", "rises": "33", "breaks": "31", "n/a": "2"}  # of ANSI colours

Cells = Sequence[str]


def text_tables(report: LabReport, colour: bool = False, lang: str = "en") -> str:
    """Both tables, the order and the summary."""
    w, grid, L, t = words("lab", lang), words("grid", lang), report.settings.train_length, report.targets
    parts = [
        _bold(w("table_title", tokens=t["tokens"], documents=t["documents"]), colour),
        w("table_given", trained=L),
        "",
        *_align(_bits(report, w), 2, colour, [row.kind for row in report.sorted_rows()]),
        "",
        *(
            line
            for text in [*summary(report, w), *claims(report, grid)]
            for line in textwrap.wrap(text, WIDTH, subsequent_indent="  ")
        ),
        *_evidence(report, grid, colour),
        "",
        _bold(w("costs_title"), colour),
        "",
        *_align(costs(report, w), 1, colour),
    ]
    return "\n".join([*parts, "", *textwrap.wrap(_legend(report, w), WIDTH)])


def _evidence(report: LabReport, w: Words, colour: bool) -> Iterator[str]:
    """How sure it is: each table below its title."""
    for title, cells, notes in tables(report, w):
        yield from ["", _bold(title, colour), "", *_align(cells, 1, colour)]
        yield from (line for note in notes for line in textwrap.wrap(note, WIDTH))


def _legend(report: LabReport, w: Words) -> str:
    """What the columns mean, for those who want to know."""
    L, longest = report.settings.train_length, report.settings.lengths[-1]
    own = w("legend_own")
    if longest == L:
        return own
    far = w("legend_far", trained=L, longest=longest, first=longest - L, last=longest - 1, flat=whole_percent(FLAT))
    return f"{far} {own}"


def _bits(report: LabReport, w: Words) -> list[Cells]:
    """Bits per byte by length."""
    L, lengths = report.settings.train_length, report.settings.lengths
    far = [w("against_cropping_to", longest=lengths[-1], trained=L), ""] if len(lengths) > 1 else []
    head = ["", *(w("given", n=n) if n == L else w.number(n) for n in lengths), *far]
    times = ["", *(f"{w.number(n / L, 'g')}×" for n in lengths), *(["", ""] if far else [])]
    trigram = [w("trigram"), *[w.number(report.trigram.value, ".3f")] * len(lengths), *[""] * len(far)]
    return [head, times, *(_bits_of(row, bool(far), w) for row in report.sorted_rows()), trigram]


def _bits_of(row: EncodingResult, far: bool, w: Words) -> Cells:
    bits = [w("n/a") if x is None else w.number(x.value, ".3f") for x in row.bits]
    last = row.increase[-1]
    return [row.label, *bits, *([("" if last is None else percents(last, w)), _kind(row, w)] if far else [])]


def _kind(row: EncodingResult, w: Words) -> str:
    """The kind of curve, and how many seeds learned enough within training's lengths for it to mean anything."""
    return w(row.kind) if len(row.by_seed) == 1 else f"{w(row.kind)} {row.passed}/{len(row.by_seed)}"


def costs(report: LabReport, w: Words = ENGLISH) -> list[Cells]:
    """Parameters, time, and what else tells encodings apart."""
    s = report.settings
    L, longest = s.train_length, s.lengths[-1]
    cheapest = min(row.step_cpu_seconds for row in report.rows)
    head = ["", *(w(key) for key in ("parameters", "time", "memory", "on_a_trigram"))]
    if longest > L:
        head += [w("moved_to", place=longest - L), w("beyond", trained=L), w("holds_to")]
    cells = [
        [
            row.label,
            w.number(row.position_parameters),
            f"{w.number(row.step_cpu_seconds / cheapest, '.2f')}×",
            f"{w.number(row.step_bytes / 1e6, '.1f')} MB",
            percent(report.margins[row.label].value, w),
            w("n/a") if row.shifted is None else percent(row.shifted.value, w),
            w("n/a") if row.far is None else whole_percent(row.far),
            _crop_comparison(report, row, w),
        ][: len(head)]
        for row in report.sorted_rows()
    ]
    return [head, *cells]


def _crop_comparison(report: LabReport, row: EncodingResult, w: Words) -> str:
    if row.increase[-1] is None:
        return w("its_end", reach=row.reach)
    until = holds_until(row, report.edges, report.settings.train_length)
    return w.number(report.settings.lengths[-1] if until is None else until)


def _align(cells: Sequence[Cells], heads: int, colour: bool, kinds: Sequence[str] = ()) -> list[str]:
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


__all__ = ["costs", "text_tables"]
