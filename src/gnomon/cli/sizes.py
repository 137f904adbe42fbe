"""How `gnomon plan` prints rows of numbers, and bytes."""

from gnomon.available_memory import to_units
from gnomon.glossary import Words, words

WIDTH = 15  # of a column of numbers


def row(name: str, *values: str) -> str:
    """A name and its numbers, in columns."""
    return f"{name:<18}" + "".join(f"{value:>{WIDTH}}" for value in values)


def size(n_bytes: int, w: Words = words("plan")) -> str:  # noqa: B008  a constant
    """Bytes for people, in powers of 1000.

    >>> size(75_497_472)
    '75.5 MB'
    """
    number, unit = to_units(n_bytes)
    return f"{w.number(number, '.1f')} {unit}" if unit else w("bytes", n=n_bytes)


__all__ = ["row", "size"]
