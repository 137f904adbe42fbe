"""Compile products.c with whatever C compiler there is: when a wheel is built, and by `python -m gnomon.native`."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
LIBRARY = HERE / "products.so"


def build(folder: Path = HERE) -> str:
    """Make `products.so` beside `products.c`; "" if that worked, else why not. An older one is gone in either case."""
    target = folder / LIBRARY.name
    target.unlink(missing_ok=True)
    if sys.platform == "win32":
        return "not built on Windows"
    compiler = os.environ.get("CC", "cc").split()
    with tempfile.TemporaryDirectory(dir=folder) as room:
        made = Path(room) / LIBRARY.name
        command = [*compiler, "-O3", "-fPIC", "-shared", "-o", str(made), str(folder / "products.c")]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            return f"{compiler[0]} cannot be run: {error}"
        if done.returncode:
            return done.stderr.strip()
        made.replace(target)  # whole or not at all
    return ""
