"""The student's healthy model with something changed, healthy or not, as a target."""

from faults.students import HEALTHY, made

from gnomon.audit import Finding, Target
from gnomon.audit.laws import LAWS


def student(edits: dict[str, str] | None = None) -> Target:
    """What stands in the healthy file -> what stands in its place; everything must be found."""
    source = HEALTHY
    for right, other in (edits or {}).items():
        assert source.count(right) == 1, right
        source = source.replace(right, other)
    return made(source)


def asked(law: str, target: Target) -> Finding:
    """What the law says of it."""
    return LAWS[law](target)


def without_a_tie(more: str = "pass") -> dict[str, str]:
    return {"self.embedding.table.weight = self.head.weight": more}
