"""The lab's standard table: a line for each encoding that reads text, written to docs/lab-table.md.

python benchmarks/lab.py [SEEDS]     its first lines say how long it takes; Ctrl-C stops it, the same command continues
"""

import subprocess
import sys
from datetime import date
from pathlib import Path

from bench import machine

HOUSE = Path(__file__).parent.parent
FOLDER = HOUSE / "runs" / "standard"
PAGE = HOUSE / "docs" / "lab-table.md"
COMMAND = "gnomon lab --positions all --seeds {seeds} --resume -o {folder}"

TEXT = """# The lab's standard table

Written by `python benchmarks/lab.py {seeds}`, which runs `{command}`. [The lab](lab.md) explains the columns.
Run on {day}: {machine}, seed 0.

```text
{table}
```

What it does not show: other texts than Python's standard library, models larger than two layers of width 128, windows
longer than 64, a learning rate chosen for each encoding. Three seeds say little about neighbours in the ranking. An
encoding that costs more time per step was given as many steps as the others, not as much time.
"""


def page(table: str, seeds: str) -> str:
    """The page with a table in it."""
    command = COMMAND.format(seeds=seeds, folder=FOLDER.relative_to(HOUSE))
    return TEXT.format(seeds=seeds, command=command, table=table.strip(), day=date.today(), machine=machine())


def main(seeds: str = "3") -> None:
    """Train what is left, measure, write."""
    command = COMMAND.format(seeds=seeds, folder=FOLDER)
    subprocess.run([sys.executable, "-m", *command.split()], check=True)
    PAGE.write_text(page((FOLDER / "table.txt").read_text(encoding="utf-8"), seeds), encoding="utf-8")
    print(f"written: {PAGE}", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
