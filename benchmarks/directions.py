"""Train the number translator in every direction and write its exact matches to docs/numbers.md.

python benchmarks/directions.py [--threads 2] [--folder runs/numbers]      (about three minutes a direction, two cores)

Each direction is a run folder of its own. A direction that is finished is not trained again, one that was interrupted
goes on; the page is written after each.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import torch
from bench import machine

PAGE = Path(__file__).parent.parent / "docs" / "numbers.md"
DIRECTIONS = [
    *[("digits", target) for target in ("en", "es", "pt", "pt-br")],
    *[(source, target) for source in ("en", "es", "pt") for target in ("en", "es", "pt") if source != target],
    ("en", "pt-br"),
    ("pt-br", "en"),
    ("es", "pt-br"),
    ("pt-br", "es"),
]

INTRODUCTION = """# Numbers in words, every direction

Written by `python benchmarks/directions.py`: {machine}, num2words 0.5.14.

Each row is one run of `gnomon train --task numbers --source SOURCE --target TARGET` with its defaults, on numbers from
0 to 999 999. Two held-out sets of 1 000 are translated greedily: one uniform, one log-uniform, in which short numbers
are as frequent as long ones. An answer counts only if it is right to the letter; in brackets, Wilson's 95 % interval.
`pt` is the Portuguese of Portugal, `pt-br` that of Brazil.

| from | to | uniform | log-uniform | loss (nats per token) | training |
| --- | --- | --- | --- | --- | --- |
"""


def trained(source: str, target: str, folder: Path, threads: int) -> dict[str, object]:
    """The report of a direction's run: kept, resumed, or new."""
    kept, run = folder / f"{source}-{target}.json", folder / f"{source}-{target}"
    if not kept.exists():
        go_on = ["--resume", run]
        start = ["--task", "numbers", "--source", source, "--target", target, "--output", run]
        command = ["train", *(go_on if run.exists() else start), "--threads", threads, "--json", "--quiet"]
        done = subprocess.run(
            [sys.executable, "-m", "gnomon", *map(str, command)], check=True, capture_output=True, text=True
        )
        report = json.loads(done.stdout) | {"whole": command[1] == "--task", "threads": threads}
        kept.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return json.loads(kept.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def row(source: str, target: str, report: dict[str, object]) -> str:
    """A line of the table."""
    measures = report["measures"]
    assert isinstance(measures, dict)

    def exact(name: str) -> str:
        m = measures[f"exact_match_{name}"]
        return f"{100 * m['value']:.1f} % ({100 * m['low']:.1f} to {100 * m['high']:.1f})"

    time = f"{report['seconds']:.0f} s, {report['threads']} threads" if report["whole"] else "interrupted and resumed"
    loss = measures["loss"]["value"]
    return f"| {source} | {target} | {exact('uniform')} | {exact('log_uniform')} | {loss:.4f} | {time} |"


def main() -> None:
    """Go through the directions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("runs/numbers"))
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    given.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for source, target in DIRECTIONS:
        rows.append(row(source, target, trained(source, target, given.folder, given.threads)))
        print(rows[-1], flush=True)
        PAGE.write_text(INTRODUCTION.format(machine=machine()) + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
