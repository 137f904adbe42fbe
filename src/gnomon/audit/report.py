"""A report: all that an audit found about one target."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any, get_args

from gnomon.audit.finding import Finding, Verdict
from gnomon.data import atomic
from gnomon.errors import unknown

FORMAT = 1  #: of `as_dict`; goes up when a key changes its meaning or leaves, not when one is added

#: ending of a file -> the function from a report to its text; `outputs` fills it, so that a report imports none of them
WRITERS: dict[str, Callable[..., str]] = {}
SPOKEN = (".html", ".txt")  #: formats that people read, which take a language


@dataclass(frozen=True)
class AuditReport:
    """What an audit found; `print(report)` shows it as a table, `report.save("audit.html")` writes it.

    target    name of what was audited
    about     what it is and how it was asked: architecture, depth, dtype, seed, what is tolerated
    findings  one of each law, in the order of the laws

    What models call themselves and what they raise is kept as text that can be shown anywhere: a character that
    cannot be printed (the beginning of a terminal's commands, half of a surrogate pair) becomes U+FFFD.
    """

    target: str
    about: Mapping[str, Any]
    findings: tuple[Finding, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "target", _printable(self.target))
        object.__setattr__(self, "about", {name: _printable(value) for name, value in self.about.items()})
        object.__setattr__(self, "findings", tuple(map(_printable_finding, self.findings)))

    @property
    def failed(self) -> tuple[Finding, ...]:
        """Those laws that the target breaks."""
        return self.of("FAIL")

    @property
    def ok(self) -> bool:
        """Whether it breaks none."""
        return not self.failed

    @property
    def judged(self) -> bool:
        """Whether anything was seen of it at all: that it obeys a law or breaks one."""
        return any(f.verdict in ("FAIL", "pass", "by design") for f in self.findings)

    @property
    def asked(self) -> tuple[int, int]:
        """How many laws could be judged or looked at, and how many might be: a law that wants to be told of a cache, or
        whose question made the model raise, is one that was not asked; one about windows is none of a model without."""
        looked = sum(f.verdict != "not applicable" for f in self.findings)
        return looked, looked + sum(f.might_be_asked for f in self.findings)

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many findings there are of each verdict."""
        return {verdict: len(self.of(verdict)) for verdict in get_args(Verdict)}

    def of(self, verdict: Verdict) -> tuple[Finding, ...]:
        """Findings with this verdict."""
        return tuple(f for f in self.findings if f.verdict == verdict)

    def __getitem__(self, law: str) -> Finding:
        """The finding of a law by name. Raises BadValue for a law that was not asked."""
        for found in self.findings:
            if found.law == law:
                return found
        raise unknown("law in this report", law, [f.law for f in self.findings])

    def as_dict(self) -> dict[str, Any]:
        """Everything as JSON-ready data.

        format    number of this shape
        target    name of what was audited
        about     what it is and how it was asked, by name
        ok        whether no law is broken
        counts    verdict -> how many laws
        findings  a list, one of each law in the order of the laws:
                  law, sentence, verdict ("FAIL", "pass", "not observable", "by design", "not applicable"),
                  error and tolerance (numbers, or "inf"), where (of the largest error), smallest (input that shows
                  it), note (reason, cause or hint), link (to the target's documentation), source (of the law)
        """
        return {
            "format": FORMAT,
            "target": self.target,
            "about": dict(self.about),
            "ok": self.ok,
            "counts": dict(self.counts),
            "findings": [f.as_dict() for f in self.findings],
        }

    def table(self, width: int = 100, colour: bool = False, lang: str = "en") -> str:
        """A line a law, and below it what to do about each failure; for a terminal of `width` columns, in English,
        Spanish or Portuguese ("es", "pt"), in which hints, reasons and sources stay English."""
        return WRITERS[".txt"](self, width=width, colour=colour, lang=lang)

    def save(self, path: str | Path, lang: str = "en") -> None:
        """Write it, whole or not at all, as the name ends: .html a page, .json, .sarif, .xml JUnit's, .txt the table.

        lang: of the page and the table; what programs read is the same in every language

        Raises BadValue for another ending, BadInput where the file cannot be written.
        """
        save(self, path, lang=lang)

    def __str__(self) -> str:
        """The table, in 100 columns."""
        return self.table()

    def _repr_html_(self) -> str:
        """The page in a frame of its own, for a notebook."""
        style = "width:100%;height:36rem;border:1px solid #8884;border-radius:.5rem"
        return f'<iframe srcdoc="{escape(WRITERS[".html"](self))}" style="{style}"></iframe>'


def _printable(value: Any) -> Any:
    """Text without characters that steer a terminal or that a file cannot hold; anything else as it is."""
    if not isinstance(value, str) or value.isprintable():
        return value
    return "".join(c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in value)


def _printable_finding(found: Finding) -> Finding:
    return replace(found, **{name: _printable(value) for name, value in vars(found).items()})


def save(report: AuditReport, path: str | Path, kind: str = "", lang: str = "en") -> None:
    """Write the report to `path`, whole or not at all, in the format that `kind`, else the name's ending says.

    lang: of the page and the table; programs read the same in every language
    """
    ending = kind or Path(path).suffix.lower()
    if ending not in WRITERS:
        raise unknown("ending of a report's file", ending or str(path), WRITERS)
    text = WRITERS[ending](report, **({"lang": lang} if ending in SPOKEN else {})).rstrip("\n") + "\n"
    with atomic(path) as file:
        file.write(text.encode())


__all__ = ["FORMAT", "SPOKEN", "WRITERS", "AuditReport", "save"]
