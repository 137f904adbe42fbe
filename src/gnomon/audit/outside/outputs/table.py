"""The report as text for a terminal: a line a law, and below it what a reader has to know or do."""

import textwrap
from collections.abc import Iterable, Iterator

from gnomon.audit.outside.outputs.words import counted, counted_laws, details, grouped, meaning, number
from gnomon.audit.outside.report import Report
from gnomon.audit.outside.rule import Finding, Verdict
from gnomon.audit.outside.target import OTHERS

CODES: dict[Verdict, str] = {
    "FAIL": "1;31",
    "pass": "32",
    "by design": "36",
    "not observable": "33",
    "not applicable": "2",
}  # fmt: skip  of ANSI colours
VERDICT, NUMBER, GAP = 14, 13, "  "  # widths of columns
INDENT = "    "


def written(report: Report, width: int = 100, colour: bool = False) -> str:
    """The whole text. Verdicts are words; colour only helps to find them."""
    sections = [
        _head(report, width, colour),
        _laws(report, width, colour),
        *(_broken(found, width, colour) for found in report.failed),
        *(_broken(found, width, colour) for found in report.of("by design")),
        _left_open(report, "not observable", width, colour),
        _left_open(report, "not applicable", width, colour),
        textwrap.wrap(f"{counted(report)}. {meaning(report)}", width),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def _head(report: Report, width: int, colour: bool) -> list[str]:
    """What was audited, and how."""
    said = ", ".join(f"{name} {value}" for name, value in report.about.items())
    title = textwrap.wrap(f"Audit of {report.target}", width)
    return [*(_painted(line, "1", colour) for line in title), *_wrapped(said, width, INDENT)]


def _laws(report: Report, width: int, colour: bool) -> Iterable[str]:
    """The table: law, verdict, largest error, tolerance. Laws that do not apply have none, and stand below it."""
    findings = [found for found in report.findings if found.verdict != "not applicable"]
    if not findings:
        return []
    room = width - VERDICT - 2 * NUMBER - 3 * len(GAP)
    name = min(max(len("law"), *(len(f.law) for f in findings)), room)
    titles = ["law".ljust(name), "verdict".ljust(VERDICT), *(t.rjust(NUMBER) for t in ("largest error", "tolerated"))]
    head = GAP.join(titles)
    body = [line for found in findings for line in _row(found, name, colour)]
    return [_painted(head, "1", colour), "─" * len(head), *body]


def _row(found: Finding, width: int, colour: bool) -> Iterator[str]:
    """A law's line, and more lines where its name is long."""
    first, *more = textwrap.wrap(found.law, width) or [""]
    verdict = _painted(found.verdict.ljust(VERDICT), CODES[found.verdict], colour)
    numbers = [number(x).rjust(NUMBER) for x in (found.error, found.tolerance)]
    yield GAP.join([first.ljust(width), verdict, *numbers])
    yield from more


def _broken(found: Finding, width: int, colour: bool) -> list[str]:
    """A law that is broken, by mistake or by design: everything there is to know about it."""
    start = len(found.verdict + GAP)
    first, *more = textwrap.wrap(found.law, width - start) or [""]
    title = _painted(found.verdict, CODES[found.verdict], colour) + GAP + _painted(first, "1", colour)
    named = max(len(name) for name, _ in details(found)) + len(GAP)
    lines = [line for name, text in details(found) for line in _wrapped(text, width, INDENT + name.ljust(named))]
    return [title, *(" " * start + line for line in more), *_wrapped(found.sentence, width, INDENT), *lines]


def _left_open(report: Report, verdict: Verdict, width: int, colour: bool) -> list[str]:
    """Laws about which nothing could be said; those with the same reason together, those for others counted."""
    lines: list[str] = []
    for reason, laws in grouped(report.of(verdict)).items():
        named = counted_laws(len(laws)) if reason == OTHERS else ", ".join(laws)
        said = f"{reason.removeprefix(f'{report.target} ')} ({named})"
        lines += textwrap.wrap(said, width, initial_indent=INDENT, subsequent_indent=2 * INDENT)
    return [_painted(verdict, CODES[verdict], colour), *lines] if lines else []


def _wrapped(text: str, width: int, first: str) -> list[str]:
    """Lines of which the first begins with `first`, and the others with as many spaces."""
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=" " * len(first))


def _painted(text: str, code: str, colour: bool) -> str:
    return f"\033[{code}m{text}\033[0m" if colour else text


__all__ = ["written"]
