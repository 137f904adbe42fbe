"""Repeats published comparisons, keeps docs/reproductions/NAME.json, writes docs/reproductions.md from these.

python benchmarks/reproductions.py [NAME]...    all, or those named; Ctrl-C stops it, the same command continues
                  --seeds N                     instead of five; fewer make no claim
python benchmarks/reproductions.py --write      only the page, from the results that are there
"""

import argparse
import json
import sys
from pathlib import Path

from gnomon.lab.progress import Progress
from gnomon.lab.reproductions.catalogue import reproduction, reproductions
from gnomon.lab.reproductions.report import reproduce

HOUSE = Path(__file__).parent.parent
FOLDER = HOUSE / "runs" / "reproductions"
RESULTS = HOUSE / "docs" / "reproductions"
PAGE = HOUSE / "docs" / "reproductions.md"

HEAD = """# Published results, repeated

`gnomon lab reproduce NAME` repeats a published comparison at a size that takes minutes on two cores. It prints the
published numbers, ours from five seeds (or as many as stand below), the agreement of the two orders (Kendall's tau-b
between the published numbers and our medians, with the interval of a bootstrap over seeds) and a verdict that is
computed from these: the order *appears* where the seeds settle every published difference; *in part* where they
settle that two pairs of three agree; it is *unsettled* where these seeds cannot say, and *absent* where they say
otherwise. A model that misses 90 % at the lengths it was trained on says nothing about longer ones: where most seeds
of a condition do, the order goes without it.

What these pages do not show: whether a result holds at its own size. A model of a tenth of a million parameters that
disagrees with one of a thousand times as many is a fact about small models.

Written by `python benchmarks/reproductions.py` from the files in docs/reproductions, which hold every number.
"""
MISSING = "No result is kept yet: `python benchmarks/reproductions.py {name}` makes one."


def page() -> str:
    """The page from the results that are there."""
    parts = [HEAD]
    for name in reproductions():
        file = RESULTS / f"{name}.json"
        told = [f"## {name}\n"]
        if file.exists():
            found = json.loads(file.read_text(encoding="utf-8"))
            told += [
                f"`gnomon lab reproduce {name} --seeds {found['seeds']}`\n",
                f"```text\n{found['text'].strip()}\n```\n",
            ]
        else:
            told.append(MISSING.format(name=name) + "\n")
        parts.append("\n".join(told))
    return "\n".join(parts)


def main() -> None:
    """Run and write."""
    parser = argparse.ArgumentParser(description="Repeat published comparisons and write their page.")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    names = [reproduction(name).name for name in given.names] or list(reproductions())
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in [] if given.write else names:
        with Progress(quiet=False) as progress:
            report = reproduce(name, seeds=given.seeds, folder=FOLDER, watch=progress)
        data = {**report.to_dict(), "text": report.table()}
        (RESULTS / f"{name}.json").write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
    print(f"written: {PAGE}", file=sys.stderr)


if __name__ == "__main__":
    main()
