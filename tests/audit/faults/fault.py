"""What a fault is: a healthy model, and the same one with one mistake that people really make.

fault.healthy()                      a Target that breaks no law
with fault.seeded() as target: ...   the broken one; what is patched for it stays so as long as the `with`

A fault names the laws that must fail on it, as objects: the first is the one that the report of laws and faults shows.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import gnomon as gn
from gnomon.audit import Law, SmallModel, Target
from gnomon.audit.adapters.gnomon import Gnomon

Planting = AbstractContextManager[Any]

ENCODINGS = tuple(sorted(gn.positions.names(), key=lambda name: name != "sinusoidal"))
#: that read the numbers of positions, rather than the order of tokens alone
POSITIONAL = tuple(
    name
    for name in ENCODINGS
    if gn.positions.encoding(name).acts != "nowhere" and not gn.positions.encoding(name).order_only
)
ABSOLUTE = tuple(name for name in POSITIONAL if not gn.positions.encoding(name).relative)
#: whose attention a kernel of distances computes: nothing is added to scores, or a bias of distance
BY_DISTANCE = tuple(
    name
    for name in ENCODINGS
    if gn.positions.encoding(name).acts not in ("score", "attention")
    or (gn.positions.encoding(name).acts == "score" and gn.positions.encoding(name).relative)
)
#: that can be asked with NaN in queries and keys: a count of CoPE's is a row of its table, and NaN is none
FOR_NAN = tuple(name for name in ENCODINGS if name != "cope")


@dataclass(frozen=True)
class Fault:
    """A mistake and the laws that must fail on it.

    kind    the family of mistakes it belongs to
    story   what goes wrong, in a sentence
    make    the model, healthy or (True) with what is wrong in the model itself
    plant   for a mistake in a library's own code: what patches it in, before the broken model is built
    says    what the finding must say
    """

    name: str
    kind: str
    story: str
    laws: tuple[Law, ...]
    make: Callable[[bool], Target]
    plant: Callable[[], Planting] = nullcontext
    says: str = ""

    @property
    def law(self) -> Law:
        """The first law that must fail."""
        return self.laws[0]

    def healthy(self) -> Target:
        """The twin without the mistake."""
        return self.make(False)

    @contextmanager
    def seeded(self) -> Iterator[Target]:
        """The broken target; afterwards the library is as it was."""
        with self.plant():
            yield self.make(True)


@dataclass(frozen=True)
class OurFault(Fault):
    """A mistake in Gnomon's own code.

    homes     the encodings in which it can live and show
    settings  what the model that shows it needs besides
    """

    homes: tuple[str, ...] = ENCODINGS
    settings: tuple[tuple[str, Any], ...] = ()

    @contextmanager
    def seeded_in(self, encoding: str) -> Iterator[Target]:
        """The broken target under another encoding."""
        with self.plant():
            yield model(encoding, **dict(self.settings))


def model(encoding: str, **settings: Any) -> Gnomon:
    """A small model under this encoding."""
    return Gnomon(SmallModel.of(encoding, **settings).model())


def fault(kind: str, *links: Law | str, under: str = "", **settings: Any) -> Callable[[Callable[[], Planting]], Fault]:
    """Turn a function that builds a patch of Gnomon's code into a Fault, named like it; its docstring is the story.

    links     the laws that must fail, and the encodings in which it can live; without any it lives in all
    under     the encoding that it is shown under; by default the first of those
    settings  of the model that shows it
    """
    laws = tuple(link for link in links if isinstance(link, Law))
    homes = tuple(link for link in links if isinstance(link, str)) or ENCODINGS

    def make(plant: Callable[[], Planting]) -> Fault:
        name, given = plant.__name__.replace("_", " "), tuple(settings.items())
        shown = under or homes[0]
        return OurFault(
            name, kind, story_of(plant), laws, lambda broken: model(shown, **settings), plant, "", homes, given
        )

    return make


def story_of(function: Callable[..., object]) -> str:
    """The first line of its docstring."""
    return (function.__doc__ or "").strip().splitlines()[0]


@contextmanager
def together(*plantings: Planting) -> Iterator[None]:
    """Several patches that make one fault."""
    with ExitStack() as stack:
        for planting in plantings:
            stack.enter_context(planting)
        yield


__all__ = [
    "ABSOLUTE",
    "BY_DISTANCE",
    "ENCODINGS",
    "FOR_NAN",
    "POSITIONAL",
    "Fault",
    "OurFault",
    "Planting",
    "fault",
    "model",
    "story_of",
    "together",
]
