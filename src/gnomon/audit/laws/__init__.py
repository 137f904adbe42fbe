"""The laws by name. Each is a function in a file of this package, where it is found; `gnomon/` holds those that only
our own models can be asked."""

import importlib
import pkgutil
from collections.abc import Iterator

from gnomon.audit.law import Law
from gnomon.errors import Named

#: Files whose laws come first, in this order; then all others. History is the first of all: later laws make long calls,
#: and a model that keeps something of them is to be caught before.
FIRST = (
    "history",
    "order",
    "positions",
    "sinusoids",
    "caches",
    "padding",
    "windows",
    "limits",
    "precision",
    "sources",
    "embedding",
    "heads",
    "weights",
    "copies",
    "parts",
    "loss",
    "tables",
    "bare",
)


def _discover(package: str) -> Iterator[Law]:
    names = [module.name for module in pkgutil.iter_modules(importlib.import_module(package).__path__)]
    for name in sorted(names, key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name)):
        room = importlib.import_module(f"{package}.{name}")
        yield from (found for found in vars(room).values() if isinstance(found, Law))


LAWS: Named[Law] = Named(
    "law", {found.name: found for package in (__name__, f"{__name__}.gnomon") for found in _discover(package)}
)

__all__ = ["LAWS"]
