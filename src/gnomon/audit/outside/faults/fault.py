"""What an outside fault is: a healthy model of somebody's, and the same one with one mistake that people really make.

    fault.healthy()                      a Target that breaks no law
    with fault.seeded() as target: ...   the broken one; the mistake lasts as long as the `with`
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

    kind     the family of mistakes it belongs to
    story    what goes wrong, in a sentence
    law      the name of the law that must fail
    healthy  builds the twin without the mistake
    broken   builds the model with it
    plant    for a mistake that is patched into a library's code: what puts it in, before `broken` is called
    """

    name: str
    kind: str
    story: str
    law: str
    healthy: Callable[[], Target]
    broken: Callable[[], Target]
    plant: Callable[[], Planting] = nullcontext

    @contextmanager
    def seeded(self) -> Iterator[Target]:
        """The broken target; afterwards the library is as it was."""
        with self.plant():
            yield self.broken()


__all__ = ["Fault", "Planting"]
