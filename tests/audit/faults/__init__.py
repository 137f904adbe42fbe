"""Faults: mistakes in models of Gnomon, of transformers, of students and of the tests, which the laws must see.

>>> from faults import FAULTS
>>> with FAULTS["one token ahead"].seeded() as target:
...     gn.audit(target, only="causality").ok
False

Each names the laws that must fail, and is found here by itself, in whatever module of this package it is.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType

from faults.fault import Fault, OurFault

#: beginning of a module's name -> whose models are broken there
ROOMS = {"faults.gnomon": "Gnomon", "faults.transformers": "transformers", "faults.students": "a student's model"}


def _modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(__path__, f"{__name__}."):
        yield importlib.import_module(found.name)


def _of(module: ModuleType) -> Iterator[Fault]:
    """The faults of a module, those in its lists too."""
    for value in vars(module).values():
        yield from (x for x in (value if isinstance(value, tuple | list) else (value,)) if isinstance(x, Fault))


_FOUND = {id(fault): (fault, module.__name__) for module in _modules() for fault in _of(module)}
FAULTS: dict[str, Fault] = {fault.name: fault for fault, _ in _FOUND.values()}
if len(FAULTS) < len(_FOUND):
    raise ValueError("two faults have one name")


def room_of(fault: Fault) -> str:
    """Whose model it is in; that of the tests where nobody else is named."""
    home = _FOUND[id(fault)][1]
    return next((room for name, room in ROOMS.items() if home.startswith(name)), "the tests' own models")


__all__ = ["FAULTS", "ROOMS", "Fault", "OurFault", "room_of"]
