"""Laws x mutants: every law asked about every seeded fault and about its healthy twin, printed and published.

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
from gnomon.audit import LAWS, Target

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "audit"))  # where the faults are

from faults import FAULTS, ROOMS, Fault, room_of  # noqa: E402

PAGE = ROOT / "docs" / "audit-mutants.md"
SHOWN = [fault for fault in FAULTS.values() if room_of(fault) in ROOMS.values()]
MARKS = {"pass": ".", "not observable": "o", "by design": "d", "not applicable": " "}
INTRODUCTION = """\
# Laws and mutants of the audit

A law is worth what it sees. So the laws of `gn.audit` are pointed at mutants: small random models, each with one
mistake that people really make, put into Gnomon's own code, patched into the transformers library, or written by a
student. Beside each stands its healthy twin, which no law may accuse.

{n} mutants of {kinds} kinds: {rooms}. Each is killed by the laws named for it; the healthy twins raise {alarms} alarms.
{others} more, in small models of the tests, are checked in the same way. All are in `tests/audit/faults/`.

```python
from faults import FAULTS  # in tests/audit

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
    def named(self) -> list[str]:
        """Laws that must fail."""
        return [law.name for law in self.fault.laws]

    @property
    def killed(self) -> bool:
        """Whether the law named for it fails."""
        return all(self.verdicts[law.name] == "FAIL" for law in self.fault.laws)

    @property
    def others(self) -> list[str]:
        """Laws that fail besides."""
        return [law for law, verdict in self.verdicts.items() if verdict == "FAIL" and law not in self.named]


def verdicts(target: Target) -> dict[str, str]:
    """Law -> its verdict."""
    return {finding.law: finding.verdict for finding in gn.audit(target).findings}


def rows() -> list[Row]:
    """Ask everything."""
    found = []
    for n, fault in enumerate(SHOWN, 1):
        print(f"{n} of {len(SHOWN)}: {fault.name}", file=sys.stderr)
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
        law = ", ".join(row.named) if row.killed else f"MISSED by {', '.join(row.named)}"
        lines.append(f"| {row.number} | {row.room} | {f.kind} | **{f.name}**: {f.story} | {law} | {len(row.others)} |")
    return lines


def matrix(found: list[Row]) -> list[str]:
    """Laws down, mutants across, in letters of one width."""
    laws = [law for law in LAWS if any(row.verdicts.get(law, "not applicable") != "not applicable" for row in found)]
    width = max(map(len, laws))
    lines = [f"{'':{width}}  {''.join(f'{row.number:3}'[digit] for row in found)}" for digit in range(3)]
    for law in laws:
        lines.append(f"{law:{width}}  {''.join(mark(row, law) for row in found)}".rstrip())
    return lines


def mark(row: Row, law: str) -> str:
    """One letter for a verdict."""
    verdict = row.verdicts.get(law, "not applicable")
    if verdict == "FAIL":
        return "#" if law in row.named else "x"
    return MARKS[verdict]


def page(found: list[Row]) -> str:
    """All of it."""
    rooms = Counter(row.room for row in found)
    about = INTRODUCTION.format(
        n=len(found),
        kinds=len({row.fault.kind for row in found}),
        rooms=", ".join(f"{n} in {room}" for room, n in rooms.items()),
        alarms=sum(len(row.alarms) for row in found) or "no",
        others=len(FAULTS) - len(SHOWN),
    )
    legend = (
        "`#` fails and is a law named for the mutant, `x` fails too, `.` passes, `o` not observable in this model, "
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
    wrong = [f"{row.fault.name}: missed by {', '.join(row.named)}" for row in found if not row.killed]
    wrong += [f"{row.fault.name}: its healthy twin fails {', '.join(row.alarms)}" for row in found if row.alarms]
    sys.exit("; ".join(wrong) if wrong else 0)
