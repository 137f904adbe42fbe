"""Compile the C files here with whatever compiler there is: when a wheel is built, and by `python -m gnomon.native`."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
LIBRARY = HERE / "steps.so"
FLASH = HERE / "flash.so"


def build(folder: Path = HERE) -> str:
    """Make a `.so` beside each C file; "" if that worked, else why not. Older ones are gone in either case."""
    if sys.platform == "win32":
        return "not built on Windows"
    sources = sorted(folder.glob("*.c"))
    for source in sources:
        source.with_suffix(".so").unlink(missing_ok=True)
    compiler = os.environ.get("CC", "cc").split()
    with tempfile.TemporaryDirectory(dir=folder) as room:
        for source in sources:
            made = Path(room) / f"{source.stem}.so"
            command = [*compiler, "-O3", "-fPIC", "-shared", "-o", str(made), str(source), "-lm"]
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False)
            except OSError as error:
                return f"{compiler[0]} cannot be run: {error}"
            if done.returncode:
                return done.stderr.strip()
        for source in sources:
            (Path(room) / f"{source.stem}.so").replace(source.with_suffix(".so"))  # whole or not at all
    return ""
