"""The lab's two published results, each written to a page of its own.

python benchmarks/lab.py [SEEDS]     a line for each encoding that reads text: docs/lab-table.md
python benchmarks/lab.py standard    the standard preset, what it takes to claim an order: docs/lab-standard.md

The first lines say how long it takes; Ctrl-C stops it, the same command continues.
"""

import subprocess
import sys
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from bench import machine

HOUSE = Path(__file__).parent.parent


@dataclass(frozen=True)
class Result:
    """A command, the folder it fills, the page its table goes to, and what that page says."""

    argument: str
    command: str
    folder: str
    page: str
    title: str
    caveat: str

    def text(self, table: str) -> str:
        """The page with a table in it."""
        return f"""# {self.title}

Written by `python benchmarks/lab.py {self.argument}`, which runs `{self.command} -o {self.folder}`. [The lab](lab.md)
explains the columns. Run on {date.today()}: {machine()}, from seed 0 on.

```text
{table.strip()}
```

{self.caveat}
"""

    def run(self) -> None:
        """Train what is left, measure, write."""
        command = [*self.command.split(), "--lang", "en", "-o", str(HOUSE / self.folder)]
        subprocess.run([sys.executable, "-m", *command], check=True)
        table = (HOUSE / self.folder / "table.txt").read_text(encoding="utf-8")
        (HOUSE / self.page).write_text(self.text(table), encoding="utf-8")
        print(f"written: {HOUSE / self.page}", file=sys.stderr)


def every_encoding(seeds: str) -> Result:
    """The table of all encodings that read text."""
    return Result(
        seeds,
        f"gnomon lab --positions all --seeds {seeds} --resume",
        "runs/standard",
        "docs/lab-table.md",
        "The lab's standard table",
        "What it does not show: other texts than Python's standard library, models larger than two layers of width\n"
        "128, windows longer than 64, a learning rate chosen for each encoding. Three seeds say little about\n"
        "neighbours in the ranking. An encoding that costs more time per step was given as many steps as the others,\n"
        "not as much time.",
    )


STANDARD = Result(
    "standard",
    "gnomon lab --preset standard --resume",
    "runs/lab-standard",
    "docs/lab-standard.md",
    "The lab's standard result",
    "What it does not show: other texts than Python's standard library, models larger than two layers of width 128,\n"
    "windows longer than 64, encodings besides these six. Rates were chosen from three, after a third of the steps.\n"
    "An encoding that costs more time per step was given as many steps as the others, not as much time.",
)


def main(which: str = "3") -> None:
    """One of the two."""
    (STANDARD if which == "standard" else every_encoding(which)).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
