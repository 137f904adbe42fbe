"""A report: all that an audit found about one target."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gnomon.audit.outside.rule import Finding, Verdict


@dataclass(frozen=True)
class Report:
    """What an audit found; `print(report)` shows it as a table.

    target    name of what was audited
    about     what it is: architecture, depth, dtype, seed
    findings  one of each law, in the order of the laws
    """

    target: str
    about: Mapping[str, Any]
    findings: tuple[Finding, ...]

    @property
    def failed(self) -> tuple[Finding, ...]:
        """Those laws that the target breaks."""
        return self.of("FAIL")

    @property
    def ok(self) -> bool:
        """Whether it breaks none."""
        return not self.failed

    def of(self, verdict: Verdict) -> tuple[Finding, ...]:
        """Findings with this verdict."""
        return tuple(f for f in self.findings if f.verdict == verdict)

    def __getitem__(self, law: str) -> Finding:
        """The finding of a law by name."""
        return next(f for f in self.findings if f.law == law)

    def as_dict(self) -> Mapping[str, Any]:
        """For JSON."""
        return {"target": self.target, "about": dict(self.about), "findings": [f.as_dict() for f in self.findings]}

    def __str__(self) -> str:
        """A line a law, then what to do about each failure."""
        width = max((len(f.law) for f in self.findings), default=0)
        lines = [f"{f.law:<{width}}  {f.verdict:<14}  {f.error:.2g} of {f.tolerance:.2g}" for f in self.findings]
        return "\n".join([self.target, *lines])


__all__ = ["Report"]
