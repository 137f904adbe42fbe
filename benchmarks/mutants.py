"""Laws x mutants: every outside law asked about every outside fault and about its healthy twin, printed and published.

    python benchmarks/mutants.py            print the page
    python benchmarks/mutants.py --write    and put it into docs/audit-mutants.md

Exits with 1 if a mutant is missed by the law named for it, or if a law fails on a healthy twin.
"""

import sys
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import torch
from bench import machine

import gnomon as gn
from gnomon.audit import RULES
from gnomon.audit.outside.faults import FAULTS, Fault, room_of
from gnomon.audit.outside.target import Target

PAGE = Path(__file__).parents[1] / "docs" / "audit-mutants.md"
MARKS = {"pass": ".", "not observable": "o", "by design": "d", "not applicable": " "}
INTRODUCTION = """\
# Laws and mutants of the audit

A law is worth what it sees. So the laws of `gn.audit` are pointed at mutants: small random models, each with one
mistake that people really make, put into Gnomon's own code, patched into the transformers library, or written by a
student. Beside each stands its healthy twin, which no law may accuse.

{n} mutants of {kinds} kinds: {rooms}. Each is killed by the law named for it; the healthy twins raise {alarms} alarms.

```python
from gnomon.audit.outside.faults import FAULTS

with FAULTS["one token ahead"].seeded() as target:
    print(gn.audit(target))
```

`python benchmarks/mutants.py --write` makes this page.
"""


@dataclass(frozen=True)
class Row:
    """One mutant: the verdicts of all laws on it, and the laws that accuse its healthy twin."""

    number: int
    fault: Fault
    room: str
    verdicts: dict[str, str]
    alarms: list[str]

    @property
    def killed(self) -> bool:
        """Whether the law named for it fails."""
        return self.verdicts[self.fault.law] == "FAIL"

    @property
    def others(self) -> list[str]:
        """Laws that fail besides."""
        return [law for law, verdict in self.verdicts.items() if verdict == "FAIL" and law != self.fault.law]


def verdicts(target: Target) -> dict[str, str]:
    """Law -> its verdict."""
    return {finding.law: finding.verdict for finding in gn.audit(target).findings}


def rows() -> list[Row]:
    """Ask everything."""
    found = []
    for n, fault in enumerate(FAULTS.values(), 1):
        print(f"{n} of {len(FAULTS)}: {fault.name}", file=sys.stderr)
        alarms = [law for law, verdict in verdicts(fault.healthy()).items() if verdict == "FAIL"]
        with fault.seeded() as target:
            broken = verdicts(target)
        found.append(Row(n, fault, room_of(fault), broken, alarms))
    return found


def mutants(found: list[Row]) -> list[str]:
    """The list of them, as lines of Markdown."""
    lines = ["| # | in | kind | mutant | killed by | others that fail |", "|---:|---|---|---|---|---:|"]
    for row in found:
        f = row.fault
        law = f.law if row.killed else f"MISSED by {f.law}"
        lines.append(f"| {row.number} | {row.room} | {f.kind} | **{f.name}**: {f.story} | {law} | {len(row.others)} |")
    return lines


def matrix(found: list[Row]) -> list[str]:
    """Laws down, mutants across, in letters of one width."""
    laws = [law for law in RULES if any(row.verdicts.get(law, "not applicable") != "not applicable" for row in found)]
    width = max(map(len, laws))
    lines = [f"{'':{width}}  {''.join(str(row.number // 10) if row.number > 9 else ' ' for row in found)}"]
    lines += [f"{'':{width}}  {''.join(str(row.number % 10) for row in found)}"]
    for law in laws:
        lines.append(f"{law:{width}}  {''.join(mark(row, law) for row in found)}".rstrip())
    return lines


def mark(row: Row, law: str) -> str:
    """One letter for a verdict."""
    verdict = row.verdicts.get(law, "not applicable")
    if verdict == "FAIL":
        return "#" if law == row.fault.law else "x"
    return MARKS[verdict]


def page(found: list[Row]) -> str:
    """All of it."""
    rooms = Counter(row.room for row in found)
    about = INTRODUCTION.format(
        n=len(found),
        kinds=len({row.fault.kind for row in found}),
        rooms=", ".join(f"{n} in {room}" for room, n in rooms.items()),
        alarms=sum(len(row.alarms) for row in found) or "no",
    )
    legend = (
        "`#` fails and is the law named for the mutant, `x` fails too, `.` passes, `o` not observable in this model, "
        "`d` by design, blank: not applicable. Laws that apply to none of these models are left out."
    )
    versions = machine() + (f", transformers {sys.modules['transformers'].__version__}" if library() else "")
    table = ["## The mutants", "", *mutants(found), "", "## Laws x mutants", "", legend, "", "```text"]
    return "\n".join([about, f"{versions}.", "", *table, *matrix(found), "```"]) + "\n"


def library() -> bool:
    """Whether the transformers library was imported."""
    return "transformers" in sys.modules


if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    found = rows()
    text = page(found)
    print(text)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
    wrong = [f"{row.fault.name}: missed by {row.fault.law}" for row in found if not row.killed]
    wrong += [f"{row.fault.name}: its healthy twin fails {', '.join(row.alarms)}" for row in found if row.alarms]
    sys.exit("; ".join(wrong) if wrong else 0)
