"""The audit of other libraries, each in a virtual environment of its own, with their options switched on.

    python benchmarks/peers                       # builds what is missing, audits, prints the table (20 minutes)
    python benchmarks/peers --only litgpt         # one library
    python benchmarks/peers --reproduce           # each written-up finding again, without Gnomon
    python benchmarks/peers --kept --table t.md   # the table of the results that are kept, asking nothing

Everything is kept in a folder (--cache; six environments of about 1.1 GB with a torch for CPUs, more with CUDA's) and a
run that was stopped goes on where it stood. Nothing here needs Gnomon's
own environment: any Python >= 3.11 starts it. Exits with 1 where something could not be run, or where a finding is not
reproduced; that a library breaks a law is a result.
"""

import argparse
import hashlib
import json
import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

from environments import PEERS, ROOT, Peer, python_of

HERE = Path(__file__).parent
FINDINGS = HERE.parent / "findings"
HEAD = """# Every case of the audit of other libraries

Made by `python benchmarks/peers --table docs/audit-findings-table.md`; what the failures are is told in
[what the audit found](audit-findings.md). In brackets: the largest error, of logits whose size is about 5. A number of
laws does not apply to a case that lacks what they ask for, such as a cache.
"""
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gnomon-peers"


def fingerprint(peer: Peer) -> str:
    """Of all that a result depends on: the audit, the peer and its cases."""
    sources = sorted((ROOT / "src" / "gnomon" / "audit").rglob("*.py"))
    files = (*sources, HERE / "worker.py", HERE / "cases" / "drawn.py", HERE / "cases" / f"{peer.cases}.py")
    digest = hashlib.sha256(peer.requirement.encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def results(peer: Peer, folder: Path, mark: str | None) -> dict[str, Any]:
    """Case -> its newest line, with this fingerprint if one is given."""
    path = folder / f"{peer.name}.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {line["case"]: line for line in lines if mark in (None, line["fingerprint"])}


def audited(peer: Peer, folder: Path, cases: list[str]) -> dict[str, Any]:
    """Audit a peer in its environment; raises CalledProcessError where that breaks."""
    mark = fingerprint(peer)
    python = python_of(peer, folder)
    print(f"{peer.requirement}", flush=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE), "TRANSFORMERS_VERBOSITY": "error"}
    worker = [python, HERE / "worker.py", peer.cases, folder / f"{peer.name}.jsonl", mark, *cases]
    subprocess.run(worker, check=True, env=environment)
    return results(peer, folder, mark)


def table(found: dict[str, dict[str, Any]]) -> list[str]:
    """Peer x case x law as Markdown: what each case breaks, and how many laws it keeps."""
    lines = [
        "| library | case | breaks | by design | keeps | not observable | does not apply |",
        "|---|---|---|---|---|---|---|",
    ]
    for peer, cases in found.items():
        for case, line in cases.items():
            if "raised" in line:
                lines.append(f"| {peer} | {case} | cannot be built: {_cell(line['raised'])} | | | | |")
                continue
            silent = next(
                (f for f in line["findings"] if f["law"] == "logits are numbers" and f["verdict"] == "FAIL"), None
            )
            if silent is not None:
                lines.append(f"| {peer} | {case} | does not answer: {_cell(silent['note'])} | | | | |")
                continue
            counts = Counter(f["verdict"] for f in line["findings"])
            broken = ", ".join(f"{f['law']} ({_size(f['error'])})" for f in line["findings"] if f["verdict"] == "FAIL")
            meant = ", ".join(f["law"] for f in line["findings"] if f["verdict"] == "by design")
            rest = " | ".join(str(counts[v]) for v in ("pass", "not observable", "not applicable"))
            lines.append(f"| {peer} | {case} | {broken or 'nothing'} | {meant} | {rest} |")
    return lines


def _cell(text: str) -> str:
    return text.replace("|", "/")[:120]


def _size(error: float | str) -> str:
    return "raised or not a number" if error == "inf" else f"{float(error):.2g}"


def reproduced(peers: list[Peer], folder: Path) -> bool:
    """Run every reproduction in its peer's environment; whether all still show what they showed."""
    good = True
    for peer in peers:
        scripts = sorted((FINDINGS / peer.name).glob("*.py"))
        python = python_of(peer, folder)
        for script in scripts:
            environment = {
                **os.environ,
                "OMP_NUM_THREADS": "1",
                "TRANSFORMERS_VERBOSITY": "error",
                "LOGURU_LEVEL": "ERROR",
            }
            done = subprocess.run(
                [python, "-W", "ignore", script], capture_output=True, text=True, env=environment, check=False
            )
            still = done.returncode == 0
            good &= still
            print(f"{'reproduced' if still else 'NOT REPRODUCED'}  {peer.requirement}  {script.relative_to(ROOT)}")
            told = done.stdout if still else done.stdout + done.stderr
            print("".join(f"    {line}\n" for line in told.splitlines()), end="", flush=True)
    return good


def main() -> None:
    """See the top."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=PEERS, help="this peer (may be given again)")
    parser.add_argument("--case", action="append", default=[], help="cases whose name holds this (may be given again)")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"environments and results (default {CACHE})")
    parser.add_argument("--table", type=Path, help="write the table to this file as well")
    parser.add_argument("--kept", action="store_true", help="show the newest results that are kept, and run nothing")
    parser.add_argument("--reproduce", action="store_true", help="run the reproductions of benchmarks/findings")
    asked = parser.parse_args()
    asked.cache.mkdir(parents=True, exist_ok=True)
    peers = [PEERS[name] for name in asked.only or PEERS]
    if asked.reproduce:
        raise SystemExit(not reproduced(peers, asked.cache))
    found, broken = {}, False
    for peer in peers:
        try:
            ask = audited(peer, asked.cache, asked.case) if not asked.kept else results(peer, asked.cache, None)
            found[peer.requirement] = ask
        except subprocess.CalledProcessError as error:
            broken = True
            print(f"{peer.name}: {error}")
    text = "\n".join(table(found))
    print(text)
    if asked.table is not None:
        asked.table.write_text(f"{HEAD}\n{text}\n")
    raise SystemExit(broken)


if __name__ == "__main__":
    main()
