"""Ctrl-C, SIGTERM and SIGHUP, politely: the first one asks, the second one ends."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from gnomon.errors import Terminated

NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}
if sys.platform != "win32":
    NAMES[signal.SIGHUP] = "SIGHUP"  # the terminal was closed, or its connection broke


@contextmanager
def interrupt_on_signals(message: str) -> Iterator[Callable[[], KeyboardInterrupt | None]]:
    """Within the block the first of these signals prints its name and `message`, and the yielded function returns what
    is to be raised for it, which is None before; another one does what it did before. A signal that is ignored, as
    nohup has it, stays ignored. Outside the main thread, where signals cannot be caught, nothing is ever asked."""
    asked: list[KeyboardInterrupt] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        asked.append(KeyboardInterrupt() if number == signal.SIGINT else Terminated(number))
        put_back()
        with suppress(OSError):  # nobody may be listening any more
            print(f"\n{NAMES[signal.Signals(number)]}: {message}", file=sys.stderr, flush=True)

    def put_back() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    before = {number: signal.getsignal(number) or signal.SIG_DFL for number in NAMES}
    before = {number: handler for number, handler in before.items() if handler != signal.SIG_IGN}
    for number in before:
        signal.signal(number, on_signal)
    try:
        yield lambda: asked[0] if asked else None
    finally:
        put_back()


__all__ = ["interrupt_on_signals"]
