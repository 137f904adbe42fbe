"""The audit of public implementations, small ones that people learn from: a folder of checkouts in, a table out.

    git clone https://github.com/karpathy/nanoGPT FOLDER/karpathy/nanoGPT      # and so on, owner/name below the folder
    python benchmarks/public FOLDER                print the table; repositories that are not there are left out
    python benchmarks/public FOLDER --write        and put it into docs/audit-findings.md
    python benchmarks/public FOLDER --only nano    those with this in their names, in full

Each case runs in a process of its own. Exits with 1 if one cannot be asked, or if a finding is not
among those that were confirmed by hand.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).parent
sys.path[:1] = [str(HERE), str(HERE.parent)]
import language_models  # noqa: E402, F401
import translators  # noqa: E402, F401
from bench import machine  # noqa: E402
from cases import CASES, Case  # noqa: E402
from confirmed import CONFIRMED  # noqa: E402

PAGE = HERE.parents[1] / "docs" / "audit-findings.md"
BEGIN, END = "<!-- public -->\n", "<!-- end of public -->"


def audited(number: int, folder: Path) -> dict[str, Any]:
    """The report of a case as JSON; {"refused": why} where the model cannot be made or asked."""
    run = [sys.executable, str(HERE / "worker.py"), str(number), str(folder)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"refused": (done.stderr.strip().splitlines() or ["no word"])[-1]}
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


def commit(checkout: Path) -> str:
    """The first digits of a checkout's commit."""
    run = ["git", "-C", str(checkout), "rev-parse", "--short=10", "HEAD"]
    return subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip()


def row(case: Case, report: dict[str, Any], at: str) -> str:
    """A line of the table."""
    home = f"[{case.repository}](https://github.com/{case.repository}) @ `{at}`"
    if "refused" in report:
        return f"| {home} | {case.name} | refused: {report['refused'].replace('|', '/')} | | |"
    counts, failed = report["counts"], [f["law"] for f in report["findings"] if f["verdict"] == "FAIL"]
    asked = counts["pass"] + counts["FAIL"] + counts["not observable"]
    return f"| {home} | {case.name} | {asked} | {counts['pass']} | {'; '.join(failed) or 'nothing'} |"


def page(found: list[tuple[Case, dict[str, Any], str]]) -> str:
    """The table, and the counts above it."""
    reports = [report for _, report, _ in found if "refused" not in report]
    laws = sum(r["counts"]["pass"] + r["counts"]["FAIL"] + r["counts"]["not observable"] for r in reports)
    broken = [(c, f["law"]) for c, r, _ in found for f in r.get("findings", ()) if f["verdict"] == "FAIL"]
    confirmed = sum(key(case, law) in CONFIRMED for case, law in broken)
    homes = len({case.repository for case, report, _ in found if "refused" not in report})
    lines = [
        f"{len(reports)} models of {homes} repositories, {laws} laws judged, {len(broken)} findings, of which "
        f"{confirmed} confirmed by hand. {machine()}.",
        "",
        "| repository | model | laws judged | kept | broken |",
        "|---|---|---:|---:|---|",
        *(row(*one) for one in found),
    ]
    return "\n".join(lines)


def key(case: Case, law: str) -> tuple[str, str, str]:
    """A finding's name in CONFIRMED."""
    return case.repository, case.name, law


def main() -> None:
    """See above."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folder", type=Path)
    asked.add_argument("--only", default="")
    asked.add_argument("--write", action="store_true")
    given = asked.parse_args()
    torch.set_num_threads(1)
    found, unconfirmed = [], []
    for number, case in enumerate(CASES):
        checkout = given.folder / case.repository
        if not checkout.is_dir() or given.only.lower() not in f"{case.repository} {case.name}".lower():
            continue
        report = audited(number, given.folder.resolve())
        found.append((case, report, commit(checkout)))
        unconfirmed += [f"{case.repository}: refused"] if "refused" in report else []
        for finding in report.get("findings", ()):
            if finding["verdict"] == "FAIL":
                known = CONFIRMED.get(key(case, finding["law"]))
                unconfirmed += [] if known else [f"{case.repository}: {finding['law']}"]
                print(f"{case.repository}, {case.name}: {finding['law']}: {finding['note']}", file=sys.stderr)
        if given.only:
            print(f"{case.repository}, {case.name}: {report.get('last', report.get('refused'))}", file=sys.stderr)
    table = page(found)
    print(table)
    if given.write:
        before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}{table}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    sys.exit(f"not confirmed: {'; '.join(unconfirmed)}" if unconfirmed else 0)


if __name__ == "__main__":
    main()
