"""Run inside a peer's environment: audits its cases and appends one line of JSON for each to a file.

    python worker.py CASES RESULTS FINGERPRINT [NAME ...]

A case that stands in the file with this fingerprint is left out.
"""

import importlib
import json
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import torch

import gnomon as gn

ARGUMENTS = ("law", "verdict", "error", "tolerance", "where", "smallest", "note", "link")


def asked(case: Any) -> dict[str, Any]:
    """What the audit says of a case; one that cannot be built says why."""
    try:
        model = case()
    except Exception as raised:
        return {"raised": f"{type(raised).__name__}: {' '.join(str(raised).split())[:200]}"}
    report = gn.audit(model).as_dict()
    return {"target": report["target"], "findings": [{key: f[key] for key in ARGUMENTS} for f in report["findings"]]}


def main() -> None:
    """Audit what is not there yet."""
    file, results, fingerprint, *only = sys.argv[1:]
    cases = importlib.import_module(f"cases.{file}").CASES
    path = Path(results)
    lines = path.read_text().splitlines() if path.exists() else []
    done = {line["case"] for line in map(json.loads, lines) if line["fingerprint"] == fingerprint}
    wanted = [name for name in cases if not only or any(word in name for word in only)]
    for n, name in enumerate(wanted, 1):
        if name in done:
            continue
        began = time.perf_counter()
        found = asked(cases[name])
        seconds = time.perf_counter() - began
        failed = [f["law"] for f in found.get("findings", ()) if f["verdict"] == "FAIL"]
        print(
            f"  {n}/{len(wanted)} {name}: {found.get('raised') or ', '.join(failed) or 'passes'} ({seconds:.1f} s)",
            flush=True,
        )
        with path.open("a") as out:
            out.write(json.dumps({"case": name, "fingerprint": fingerprint, "seconds": seconds, **found}) + "\n")


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    try:
        main()
    except Exception:
        traceback.print_exc()
        raise SystemExit(2) from None
