"""Ctrl-C, politely: the first one asks, the second one ends."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def ctrl_c_asks(message: str) -> Iterator[Callable[[], bool]]:
    """Within the block the first Ctrl-C prints `message` and makes the yielded function return True; the second one
    does what Ctrl-C did before. Outside the main thread, where signals cannot be caught, it always returns False."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return

    def on_signal(number: int, frame: FrameType | None) -> None:
        asked.set()
        signal.signal(signal.SIGINT, before)
        print(f"\n{message}", file=sys.stderr, flush=True)

    before = signal.getsignal(signal.SIGINT) or signal.default_int_handler
    signal.signal(signal.SIGINT, on_signal)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)


__all__ = ["ctrl_c_asks"]
