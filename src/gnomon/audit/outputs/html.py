"""The report as one HTML page that needs nothing else: no other file, no script, no other machine.

All that comes from a model is escaped, and a link is one only where it begins with http. Verdicts are words with a
sign of their own, so that nothing depends on colour.
"""

from collections.abc import Iterable
from html import escape
from importlib.resources import files
from math import inf, log10

from gnomon.audit.finding import Finding, Verdict
from gnomon.audit.outputs.words import conclusion, count_verdicts, details, group_by_reason, name, number, reason
from gnomon.audit.report import AuditReport
from gnomon.glossary import Words, translate, words

SIGNS: dict[Verdict, str] = {
    "FAIL": "✕",
    "pass": "✓",
    "by design": "◆",
    "not observable": "○",
    "not applicable": "–",
}
DECADES = 6  #: of the meter on each side of what is tolerated
POLICY = "default-src 'none'; style-src 'unsafe-inline'"  #: nothing may be fetched, whatever the page holds


def page(report: AuditReport, lang: str = "en") -> str:
    """The page as text, in English, Spanish or Portuguese."""
    w = words("audit", lang)
    css = files("gnomon.audit.outputs").joinpath("page.css").read_text(encoding="utf-8")
    title = w("title", target=report.target)
    parts = [
        _header(report, w),
        *_cards(report, "FAIL", w("h_broken"), w),
        *_cards(report, "by design", w("h_design"), w),
        *_laws(report, w),
        *_left_open(report, "not observable", w("h_unseen"), w),
        *_left_open(report, "not applicable", w("h_apart"), w),
        _tag("h2", w("h_asked")),
        _facts(
            (translate(key, w.lang), translate(value, w.lang) if isinstance(value, str) else str(value))
            for key, value in report.about.items()
        ),
        _tag("footer", w("footer", counted=count_verdicts(report, w)) + ("" if w.lang == "en" else f" {w('english')}")),
    ]
    return (
        f'<!doctype html>\n<html lang="{w.lang}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f"<title>{escape(title)}</title>\n<style>\n{css}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + "\n</main>\n</body>\n</html>\n"
    )


def _header(report: AuditReport, w: Words) -> str:
    """Whose audit it is, what it comes to, and how many findings there are of each verdict."""
    kind = "broken" if report.failed else "sound" if report.counts["pass"] else "open"
    tiles = "".join(
        f'<li class="tile {_class(verdict)}"><b>{n}</b> {_sign(verdict)} {escape(w(verdict))}</li>'
        for verdict, n in report.counts.items()
        if n
    )
    return (
        f'<header class="{kind}">{_tag("p", w("audit"), "eyebrow")}{_tag("h1", report.target)}'
        f'{_tag("p", conclusion(report, w), "lead")}<ul class="tiles">{tiles}</ul></header>'
    )


def _cards(report: AuditReport, verdict: Verdict, title: str, w: Words) -> list[str]:
    """A card a broken law."""
    found = report.of(verdict)
    return [_tag("h2", title), *(_card(one, w) for one in found)] if found else []


def _card(found: Finding, w: Words) -> str:
    return (
        f'<article class="card {_class(found.verdict)}">{_tag("h3", name(found, w))}{_pill(found.verdict, w)}'
        f"{_tag('p', translate(found.sentence, w.lang))}{_facts(details(found, w))}</article>"
    )


def _laws(report: AuditReport, w: Words) -> list[str]:
    """A row a law that applies: its sentence, its verdict, the largest error and what was tolerated."""
    findings = [found for found in report.findings if found.verdict != "not applicable"]
    if not findings:
        return []
    heads = "".join(f'<th scope="col">{w(key)}</th>' for key in ("Law", "Verdict", "Largest", "Tolerated"))
    rows = "".join(_row(found, w) for found in findings)
    return [
        _tag("h2", w("h_laws")),
        f'<table class="laws"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>',
        _tag("p", w("bar", decades=DECADES), "note"),
    ]


def _row(found: Finding, w: Words) -> str:
    law, sentence = (escape(translate(text, w.lang)) for text in (found.law, found.sentence))
    return (
        f'<tr><th scope="row">{law}<small>{sentence}</small></th>'
        f"<td>{_pill(found.verdict, w)}</td><td>{_meter(found)}{number(found.error, w)}</td>"
        f'<td class="tolerated" data-name="{escape(w("tolerated"))}">{number(found.tolerance, w)}</td></tr>'
    )


def _meter(found: Finding) -> str:
    """A bar that reaches the mark in its middle where the error is just what is tolerated."""
    if found.error == 0:
        share = 0.0
    elif not (found.error < inf and found.tolerance > 0):
        share = 1.0
    else:
        decades = log10(found.error) - log10(found.tolerance)
        share = min(max(0.5 + decades / (2 * DECADES), 0.02), 1.0)
    return f'<i class="meter {_class(found.verdict)}" aria-hidden="true"><i style="width:{share:.0%}"></i></i>'


def _left_open(report: AuditReport, verdict: Verdict, title: str, w: Words) -> list[str]:
    """Laws about which nothing could be said, with the reasons."""
    groups = group_by_reason(report.of(verdict))
    items = "".join(
        f"<li>{' '.join(f'<b>{escape(translate(law, w.lang))}</b>' for law in laws)}"
        f"<p>{escape(reason(note, report.target, w))}</p></li>"
        for note, laws in groups.items()
    )
    return [_tag("h2", title), f'<ul class="open">{items}</ul>'] if groups else []


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    return "<dl>" + "".join(f"{_tag('dt', name)}<dd>{_link(text)}</dd>" for name, text in facts) + "</dl>"


def _link(text: str) -> str:
    """The text, which is a link where it is nothing but an address on the web."""
    address = escape(text)
    if text.startswith(("https://", "http://")) and " " not in text:
        return f'<a href="{address}" rel="noreferrer">{address}</a>'
    return address


def _pill(verdict: Verdict, w: Words) -> str:
    return f'<span class="pill {_class(verdict)}">{_sign(verdict)} {escape(w(verdict))}</span>'


def _sign(verdict: Verdict) -> str:
    return f'<span aria-hidden="true">{SIGNS[verdict]}</span>'


def _class(verdict: Verdict) -> str:
    return verdict.lower().replace(" ", "-")


def _tag(name: str, text: str, kind: str = "") -> str:
    opening = f'{name} class="{kind}"' if kind else name
    return f"<{opening}>{escape(text)}</{name}>"


__all__ = ["page"]
