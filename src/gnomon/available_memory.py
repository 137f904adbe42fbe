"""How much memory there is, asked before something large is made: an answer at once instead of a killed process."""

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

from gnomon.errors import BadValue

LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of a container
UNKNOWN = 2**40  # taken where the system does not say: more than any machine that this is run on by chance


@cache
def memory() -> int:
    """Bytes that a process can have here: the machine's, or what its container allows."""
    found = [UNKNOWN]
    with suppress(OSError, ValueError, AttributeError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for file in LIMITS:
        with suppress(OSError, ValueError):  # absent, or "max"
            found.append(int(Path(file).read_text()))
    return min(bytes_ for bytes_ in found if bytes_ > 0)


def room_for(n_bytes: int, what: str, instead: str) -> None:
    """Raise BadValue where `what` needs more bytes than there are; `instead` says what to do.

    >>> room_for(10**18, "such a table", "take fewer")
    Traceback (most recent call last):
        ...
    gnomon.errors.BadValue: such a table needs about 1000000.0 TB of memory, more than there is here: take fewer
    """
    if n_bytes > memory():
        raise BadValue(f"{what} needs about {size_text(n_bytes)} of memory, more than there is here: {instead}")


def size_text(n_bytes: int) -> str:
    """Bytes for people, in powers of 1000.

    >>> size_text(75_497_472)
    '75.5 MB'
    """
    number, unit = to_units(n_bytes)
    return f"{number:.1f} {unit}" if unit else f"{n_bytes} bytes"


def to_units(n_bytes: int) -> tuple[float, str]:
    """Bytes as a number of kB, MB, GB or TB; without a unit below 1000."""
    power = min((len(str(n_bytes)) - 1) // 3, 4)
    return n_bytes / 1000**power, ("", "kB", "MB", "GB", "TB")[power]


__all__ = ["memory", "room_for", "size_text", "to_units"]
