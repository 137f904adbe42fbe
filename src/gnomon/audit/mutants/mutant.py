"""What a mutant is: one fault that people really make, put into Gnomon's own code while a `with` lasts."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

Planting = AbstractContextManager[Any]


@dataclass(frozen=True)
class Mutant:
    """A seeded fault. `with mutant.seeded(): ...` makes Gnomon wrong in exactly this way.

    kind   the family of faults it belongs to
    story  what goes wrong
    law    the law that must fail on it
    of     the encodings in which the fault can live; empty means all
    """

    name: str
    kind: str
    story: str
    law: str
    of: tuple[str, ...]
    plant: Callable[[], Planting]

    @contextmanager
    def seeded(self) -> Iterator[None]:
        """Put the fault in, and take it out again."""
        with self.plant():
            yield


def mutant(kind: str, law: str, *of: str) -> Callable[[Callable[[], Planting]], Mutant]:
    """Turn a function that builds a patch into a Mutant, named like it; the docstring's first line is the story."""

    def make(plant: Callable[[], Planting]) -> Mutant:
        story = (plant.__doc__ or "").strip().splitlines()[0]
        return Mutant(plant.__name__.replace("_", " "), kind, story, law, of, plant)

    return make


@contextmanager
def together(*plantings: Planting) -> Iterator[None]:
    """Several patches that make one fault."""
    with ExitStack() as stack:
        for planting in plantings:
            stack.enter_context(planting)
        yield


__all__ = ["Mutant", "Planting", "mutant", "together"]
