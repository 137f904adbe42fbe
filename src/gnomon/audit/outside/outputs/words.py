"""What every output says in the same words."""

import re
from collections.abc import Iterable, Iterator
from math import inf

from gnomon.audit.outside.consequences import AFTER
from gnomon.audit.outside.report import Report
from gnomon.audit.outside.rule import UNASKED, Finding

TELLS = re.compile(r"Torch\(model, (\w+=)\.\.\.\)")  #: in a note: the argument that would let a law be asked


def number(x: float) -> str:
    """An error or a tolerance in two digits."""
    return "infinite" if not abs(x) < inf else "0" if x == 0 else f"{x:.2g}"


def size(found: Finding) -> str:
    """The largest error beside what is tolerated."""
    if not abs(found.error) < inf:
        return "no number came out"
    if found.tolerance == 0:
        return f"{number(found.error)}, where nothing is tolerated"
    ratio = found.error / found.tolerance
    times = f"{ratio:.1e}" if ratio >= 1e6 else f"{ratio:,.0f}".replace(",", " ") if ratio >= 10 else f"{ratio:.1f}"
    return f"{number(found.error)}, {times} times the tolerated {number(found.tolerance)}"


def details(found: Finding) -> list[tuple[str, str]]:
    """What there is to say about a broken law, by name: error, where, smallest input, cause or hint, source, link."""
    said = [
        ("error", size(found)), ("where", found.where), ("smallest", found.smallest), ("hint", found.note),
        ("behind it", found.source), ("said at", found.link),
    ]  # fmt: skip
    if found.verdict == "by design":
        said[3] = ("reason", found.note)
    return [(name, text) for name, text in said if text]


def grouped(findings: Iterable[Finding]) -> dict[str, list[str]]:
    """Reasons, each with the laws that give it."""
    groups: dict[str, list[str]] = {}
    for found in findings:
        groups.setdefault(found.note, []).append(found.law)
    return groups


def counted(report: Report) -> str:
    """The counts in words: "5 laws: 1 FAIL, 4 pass"."""
    counts = ", ".join(f"{n} {verdict}" for verdict, n in report.counts.items() if n)
    return f"{counted_laws(len(report.findings))}: {counts}" if counts else "no law was asked"


def meaning(report: Report) -> str:
    """What the counts mean."""
    broken, meant = len(report.failed), report.counts["by design"]
    judged, asked = report.asked
    part = f", {judged} of {asked}" if judged < asked else ""
    if broken:
        also = f", and {meant} more by design, as its documentation says" if meant else ""
        verdict = f"{report.target} breaks {counted_laws(broken)}{also}."
    elif report.counts["pass"]:
        but = f" but {counted_laws(meant)} that it breaks by design, as its documentation says" if meant else ""
        verdict = f"{report.target} obeys every law that could be judged{part}{but}."
    else:
        why = "; ".join(grouped(report.findings)) or "no law was asked"
        verdict = f"Nothing was judged about {report.target}: {why}."
    return " ".join([verdict, *_left_out(report)])


def _left_out(report: Report) -> Iterator[str]:
    """What no law could say, why, and what would let it: a sentence each."""
    judged, asked = report.asked
    if 0 < judged < asked / 2:
        yield f"MOST LAWS WERE NOT ASKED: {judged} of {asked} were."
    if only := report.about.get("answers"):
        yield f"It answers {only}."
    if untold := report.about.get("not told"):
        yield f"It was not told about its arguments {untold}, so nothing is said of what they do."
    if unseen := report.counts["not observable"]:
        yield f"{counted_laws(unseen)} could not be seen in it."
    if raised := [found for found in report.of("not applicable") if found.note.startswith(UNASKED)]:
        why = next(iter(grouped(raised))).removeprefix(f"{UNASKED}: ")
        yield f"{counted_laws(len(raised))} could not be asked, since it raised {why}."
    needs = {told[1]: None for found in report.findings for told in TELLS.finditer(found.note)}
    lacking = [found for found in report.of("not applicable") if TELLS.search(found.note)]
    if lacking and judged:
        yield f"{counted_laws(len(lacking))} would be asked if it was told {', '.join(needs)}."


def headline(report: Report) -> str:
    """One line that says what is wrong: laws that are broken by themselves, and what the first one looks like."""
    if report.ok:
        return meaning(report)
    first = [found for found in report.failed if not found.note.startswith(AFTER)]
    more = len(report.failed) - len(first)
    also = f" ({counted_laws(more)} more may follow from it)" if more else ""
    return f"{report.target} breaks {', '.join(found.law for found in first)}: {first[0].note}{also}"


def counted_laws(n: int) -> str:
    """ "1 law", "2 laws"."""
    return "1 law" if n == 1 else f"{n} laws"


__all__ = ["counted", "counted_laws", "details", "grouped", "headline", "meaning", "number", "size"]
