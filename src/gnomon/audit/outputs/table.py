"""The report as text for a terminal: a line a law, and below it what a reader has to know or do."""

import textwrap
from collections.abc import Iterable, Iterator

from gnomon.audit.finding import Finding, Verdict
from gnomon.audit.outputs.words import (
    conclusion,
    count_laws,
    count_verdicts,
    details,
    group_by_reason,
    name,
    number,
    reason,
)
from gnomon.audit.report import AuditReport
from gnomon.audit.target import OTHERS
from gnomon.glossary import Words, translate, words

CODES: dict[Verdict, str] = {
    "FAIL": "1;31",  # ANSI colours
    "pass": "32",
    "by design": "36",
    "not observable": "33",
    "not applicable": "2",
}
VERDICT, NUMBER, GAP = 14, 13, "  "  # widths of columns
INDENT = "    "


def text_table(report: AuditReport, width: int = 100, colour: bool = False, lang: str = "en") -> str:
    """The whole text. Verdicts are words; colour only helps to find them."""
    w = words("audit", lang)
    sections = [
        _head(report, width, colour, w),
        _laws(report, width, colour, w),
        *(_broken(found, width, colour, w) for found in report.failed),
        *(_broken(found, width, colour, w) for found in report.of("by design")),
        _left_open(report, "not observable", width, colour, w),
        _left_open(report, "not applicable", width, colour, w),
        textwrap.wrap(f"{count_verdicts(report, w)}. {conclusion(report, w)}", width),
        [] if w.lang == "en" else textwrap.wrap(w("english"), width),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def _head(report: AuditReport, width: int, colour: bool, w: Words) -> list[str]:
    """What was audited, and how."""
    said = ", ".join(f"{translate(name, w.lang)} {translate(x, w.lang)}" for name, x in report.about.items())
    title = textwrap.wrap(w("title", target=report.target), width)
    return [*(_paint(line, "1", colour) for line in title), *_wrap(said, width, INDENT)]


def _laws(report: AuditReport, width: int, colour: bool, w: Words) -> Iterable[str]:
    """The table: law, verdict, largest error, tolerance. Laws that do not apply have none, and stand below it."""
    findings = [found for found in report.findings if found.verdict != "not applicable"]
    if not findings:
        return []
    room = width - VERDICT - 2 * NUMBER - 3 * len(GAP)
    names = min(max(len(w("law")), *(len(translate(f.law, w.lang)) for f in findings)), room)
    numbers = (w(title).rjust(NUMBER) for title in ("largest", "tolerated"))
    head = GAP.join([w("law").ljust(names), w("verdict").ljust(VERDICT), *numbers])
    body = [line for found in findings for line in _row(found, names, colour, w)]
    return [_paint(head, "1", colour), "─" * len(head), *body]


def _row(found: Finding, width: int, colour: bool, w: Words) -> Iterator[str]:
    """A law's line, and more lines where its name is long."""
    first, *more = textwrap.wrap(translate(found.law, w.lang), width) or [""]
    verdict = _paint(w(found.verdict).ljust(VERDICT), CODES[found.verdict], colour)
    numbers = [number(x, w).rjust(NUMBER) for x in (found.error, found.tolerance)]
    yield GAP.join([first.ljust(width), verdict, *numbers])
    yield from more


def _broken(found: Finding, width: int, colour: bool, w: Words) -> list[str]:
    """A law that is broken, by mistake or by design: everything there is to know about it."""
    verdict = w(found.verdict)
    start = len(verdict + GAP)
    first, *more = textwrap.wrap(name(found, w), width - start) or [""]
    title = _paint(verdict, CODES[found.verdict], colour) + GAP + _paint(first, "1", colour)
    facts = details(found, w)
    named = max(len(key) for key, _ in facts) + len(GAP)
    lines = [line for key, text in facts for line in _wrap(text, width, INDENT + key.ljust(named))]
    sentence = _wrap(translate(found.sentence, w.lang), width, INDENT)
    return [title, *(" " * start + line for line in more), *sentence, *lines]


def _left_open(report: AuditReport, verdict: Verdict, width: int, colour: bool, w: Words) -> list[str]:
    """Laws about which nothing could be said; those with the same reason together, those for others counted."""
    lines: list[str] = []
    for note, laws in group_by_reason(report.of(verdict)).items():
        named = count_laws(len(laws), w) if note == OTHERS else ", ".join(translate(law, w.lang) for law in laws)
        said = f"{reason(note, report.target, w).removeprefix(f'{report.target} ')} ({named})"
        lines += textwrap.wrap(said, width, initial_indent=INDENT, subsequent_indent=2 * INDENT)
    return [_paint(w(verdict), CODES[verdict], colour), *lines] if lines else []


def _wrap(text: str, width: int, first: str) -> list[str]:
    """Lines of which the first begins with `first`, and the others with as many spaces."""
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=" " * len(first))


def _paint(text: str, code: str, colour: bool) -> str:
    return f"\033[{code}m{text}\033[0m" if colour else text


__all__ = ["text_table"]
