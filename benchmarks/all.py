"""Run every benchmark here and write what they print, with an explanation each, to docs/speed.md.

make bench                                  about ten minutes on two idle cores
python benchmarks/all.py --json             the same as JSON, a list of results; the page is written too
python benchmarks/all.py writing machine    these only; the page is left alone
python benchmarks/all.py --smoke            tiny models, two rounds: that everything runs. It measures nothing
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "speed.md"

INTRODUCTION = """# Speed, measured

Written by `make bench`. Contestants take turns in one process; what counts is the ratio within a round: its median, and
in brackets its quartiles. Milliseconds are medians too, but they depend on what else the machine does. A share of the
limit is the least time that this machine needs for the work (the numbers of `machine.py`) over the time it took.

CUDA and MPS have not been measured: there was no such device. `python benchmarks/gpu.py` is the command for one; it
measures the device's own limits first and prints how near attention, rotation, training and writing come to them.
"""

SECTIONS = {
    "machine": "What the machine can do at most, by the fastest way at hand.",
    "encodings": "What an encoding costs in a training step of the same small model, against no position at all.",
    "attention": "Biases of distance, and ALiBi as a dense T x T bias, against plain causal attention.",
    "rotation": "Rotating queries and keys, against copying them and against other libraries.",
    "growth": "Time and memory against the length of a text, batch and beams: ![growth](images/growth.png)\n\n"
    "An exponent of 2 is the square of the length. Each measurement is a process of its own, at most 10 s long.",
    "training": "A training step of a decoder of 10 M parameters, against other libraries.",
    "writing": "Text written by SmolLM2-135M and random models in each form of the weights; and what a form loses.",
    "parallel": "A Transformer reads all positions at once; writing goes one after another.",
    "loading": "A model of 135 M parameters from its folder: weights are mapped, or converted one by one.",
    "help": "The command line imports nothing that it does not need.",
}


SMOKE = ("machine", "writing", "help")  # the fastest of them


def run(name: str, smoke: bool) -> tuple[str, list[object]]:
    """What a benchmark prints, and its results."""
    print(f"benchmarks/{name}.py ...", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as room:
        records = Path(room) / "records"
        told = {"GNOMON_BENCH_RECORDS": str(records), **({"GNOMON_BENCH_SMOKE": "1"} if smoke else {})}
        command = [sys.executable, str(HERE / f"{name}.py")]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **told})
        if done.returncode:
            sys.exit(f"benchmarks/{name}.py failed:\n{done.stderr[-4000:]}")
        lines = records.read_text(encoding="utf-8").splitlines() if records.exists() else []
    return done.stdout.strip(), [{"benchmark": name, **json.loads(line)} for line in lines]


def main() -> None:
    """Run, collect, write."""
    parser = argparse.ArgumentParser(description="What Gnomon and its peers take for the same work.")
    parser.add_argument("names", nargs="*", choices=[[], *SECTIONS], help="only these, without writing the page")
    parser.add_argument("--json", action="store_true", help="print all results as a JSON list")
    parser.add_argument("--smoke", action="store_true", help="tiny models and two rounds; nothing is written")
    asked = parser.parse_args()
    names = asked.names or (SMOKE if asked.smoke else SECTIONS)
    parts, results = [INTRODUCTION], list[object]()
    for name in names:
        printed, found = run(name, asked.smoke)
        results += found
        parts.append(f"## {name}.py\n\n{SECTIONS[name]}\n\n```text\n{printed}\n```\n")
    if asked.json:
        print(json.dumps(results, indent=1))
    elif asked.names or asked.smoke:
        print("\n".join(parts[1:]))
    if not asked.names and not asked.smoke:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text("\n".join(parts), encoding="utf-8")
        print(f"written: {PAGE}", file=sys.stderr)


if __name__ == "__main__":
    main()
