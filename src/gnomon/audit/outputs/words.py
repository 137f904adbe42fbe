"""What every output says in the same words."""

from collections.abc import Iterable, Iterator
from math import inf

from gnomon.audit.consequences import AFTER
from gnomon.audit.finding import TELLS, UNASKED, Finding
from gnomon.audit.report import AuditReport
from gnomon.glossary import Words, translate, words

LARGER = " (seen once its weights are drawn larger)"  #: how a note ends
ENGLISH = words("audit")


def number(x: float, w: Words = ENGLISH) -> str:
    """An error or a tolerance in two digits."""
    return w("infinite") if not abs(x) < inf else "0" if x == 0 else w.number(x, ".2g")


def size(found: Finding, w: Words = ENGLISH) -> str:
    """The largest error beside what is tolerated."""
    if not abs(found.error) < inf:
        return w("no_number")
    error = number(found.error, w)
    if found.tolerance == 0:
        return w("nothing_tolerated", error=error)
    ratio = found.error / found.tolerance
    times = w.number(ratio, ".1e" if ratio >= 1e6 else ".0f" if ratio >= 10 else ".1f")
    return w("times", error=error, times=times, tolerance=number(found.tolerance, w))


def name(found: Finding, w: Words = ENGLISH) -> str:
    """The law's name; in another language than English, followed by the one that --only takes."""
    own = translate(found.law, w.lang)
    return own if own == found.law else f"{own} ({found.law})"


def details(found: Finding, w: Words = ENGLISH) -> list[tuple[str, str]]:
    """What there is to say about a broken law, by name: error, where, smallest input, cause or hint, source, link."""
    said = [
        ("error", size(found, w)),
        ("where", translate(found.where, w.lang)),
        ("smallest", found.smallest),
        ("reason" if found.verdict == "by design" else "hint", _note(found, w)),
        ("behind", found.source),
        ("said_at", found.link),
    ]
    return [(w(key), text) for key, text in said if text]


def _note(found: Finding, w: Words) -> str:
    """A reason, a cause or a hint; in English where the glossary does not have it."""
    other = found.note.partition('"')[2].partition('"')[0]
    return w("follows", law=translate(other, w.lang)) if found.note.startswith(AFTER) else reason(found.note, "", w)


def reason(note: str, target: str, w: Words) -> str:
    """Why something is as it is, which often begins with the target's name; in English where the glossary does not
    have it."""
    whose = f"{target} " if target and note.startswith(f"{target} ") else ""
    plain, larger, _ = note.removeprefix(whose).partition(LARGER)
    text = whose + translate(plain, w.lang)
    return w("larger", note=text) if larger else text


def group_by_reason(findings: Iterable[Finding]) -> dict[str, list[str]]:
    """Reasons, each with the laws that give it."""
    groups: dict[str, list[str]] = {}
    for found in findings:
        groups.setdefault(found.note, []).append(found.law)
    return groups


def count_verdicts(report: AuditReport, w: Words = ENGLISH) -> str:
    """The counts in words: "5 laws: 1 FAIL, 4 pass"."""
    counts = ", ".join(f"{n} {w(verdict)}" for verdict, n in report.counts.items() if n)
    laws = count_laws(len(report.findings), w)
    return w("counted", laws=laws, counts=counts) if counts else w("none_asked")


def conclusion(report: AuditReport, w: Words = ENGLISH) -> str:
    """What the counts mean."""
    broken, meant = len(report.failed), report.counts["by design"]
    judged, asked = report.asked
    said = {"target": report.target, "part": w("part", judged=judged, asked=asked) if judged < asked else ""}
    if broken:
        laws = count_laws(broken, w)
        verdict = w("breaks_and", **said, laws=laws, meant=meant) if meant else w("breaks", **said, laws=laws)
    elif report.counts["pass"]:
        verdict = w("obeys_but", **said, laws=count_laws(meant, w)) if meant else w("obeys", **said)
    else:
        verdict = w("nothing", **said, why="; ".join(group_by_reason(report.findings)) or w("none_asked"))
    return " ".join([verdict, *_left_out(report, w)])


def _left_out(report: AuditReport, w: Words) -> Iterator[str]:
    """What no law could say, why, and what would let it: a sentence each."""
    judged, asked = report.asked
    if 0 < judged < asked / 2:
        yield w("most_not_asked", judged=judged, asked=asked)
    if only := report.about.get("answers"):
        yield w("answers", only=only)
    if unused := report.about.get("not told"):
        yield w("not_told", untold=unused)
    if unseen := report.counts["not observable"]:
        yield w("unseen", laws=count_laws(unseen, w))
    if raised := [found for found in report.of("not applicable") if found.note.startswith(UNASKED)]:
        why = next(iter(group_by_reason(raised))).removeprefix(f"{UNASKED}: ")
        yield w("raised", laws=count_laws(len(raised), w), why=why)
    needs = {missing[1]: None for found in report.findings for missing in TELLS.finditer(found.note)}
    lacking = [found for found in report.of("not applicable") if TELLS.search(found.note)]
    if lacking and judged:
        yield w("lacking", laws=count_laws(len(lacking), w), needs=", ".join(needs))


def headline(report: AuditReport) -> str:
    """One line that says what is wrong: laws that are broken by themselves, and what the first one looks like."""
    if report.ok:
        return conclusion(report)
    first = [found for found in report.failed if not found.note.startswith(AFTER)]
    more = len(report.failed) - len(first)
    also = f" ({count_laws(more)} more may follow from it)" if more else ""
    return f"{report.target} breaks {', '.join(found.law for found in first)}: {first[0].note}{also}"


def count_laws(n: int, w: Words = ENGLISH) -> str:
    """ "1 law", "2 laws"."""
    return w("one_law") if n == 1 else w("laws", n=n)


__all__ = [
    "ENGLISH",
    "conclusion",
    "count_laws",
    "count_verdicts",
    "details",
    "group_by_reason",
    "headline",
    "name",
    "number",
    "reason",
    "size",
]
