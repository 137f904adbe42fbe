"""How much private memory a load takes at its peak, and how large the model is, in bytes. Linux tells.

python peak.py WARM MODEL DTYPE        WARM is loaded first, for what is imported on the way
"""

import sys
import threading
import time
from pathlib import Path

from gnomon.checkpoints import load

ROLLUP = Path("/proc/self/smaps_rollup")


def private() -> int:
    """Bytes of this process that are in no file."""
    return sum(int(line.split()[1]) for line in ROLLUP.read_text().splitlines() if line.startswith("Anonymous:")) * 1024


def watch(seen: list[int], stop: threading.Event) -> None:
    """Look every millisecond."""
    while not stop.wait(0.001):
        seen.append(private())


if __name__ == "__main__":
    warm, path, dtype = sys.argv[1:]
    load(warm)
    time.sleep(0.1)
    before, seen, stop = private(), [0], threading.Event()
    watcher = threading.Thread(target=watch, args=(seen, stop))
    watcher.start()
    model = load(path, dtype=dtype)
    stop.set()
    watcher.join()
    size = sum(weight.numel() * weight.element_size() for weight in model.parameters())
    print(max(*seen, private()) - before, size)
