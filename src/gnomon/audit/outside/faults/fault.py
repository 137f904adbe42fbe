"""What an outside fault is: a healthy model of somebody's, and the same one with one mistake that people really make.

fault.healthy()                      a Target that breaks no law
with fault.seeded() as target: ...   the broken one; what is patched for it stays so as long as the `with`
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from gnomon.audit.outside.target import Target

Planting = AbstractContextManager[Any]


@dataclass(frozen=True)
class Fault:
    """A mistake and the law that must fail on it.

    kind    the family of mistakes it belongs to
    story   what goes wrong, in a sentence
    law     the name of the law that must fail
    build   the healthy target and the broken one
    plant   for a mistake in a library's own code: what patches it in, before the broken target is built
    """

    name: str
    kind: str
    story: str
    law: str
    build: Callable[[], tuple[Target, Target]]
    plant: Callable[[], Planting] = nullcontext

    def healthy(self) -> Target:
        """The twin without the mistake."""
        return self.build()[0]

    @contextmanager
    def seeded(self) -> Iterator[Target]:
        """The broken target; afterwards the library is as it was."""
        with self.plant():
            yield self.build()[1]


__all__ = ["Fault", "Planting"]
