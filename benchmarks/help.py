"""How long `gnomon --help` takes as a whole process, against starting Python at all."""

import subprocess
import sys

from bench import machine, race

if __name__ == "__main__":
    print(machine())
    race(
        "Whole process",
        {
            "python -c pass": lambda: subprocess.run([sys.executable, "-c", "pass"], check=True),
            "gnomon --help": lambda: subprocess.run(
                [sys.executable, "-m", "gnomon", "--help"], check=True, stdout=subprocess.DEVNULL
            ),
        },
    )
