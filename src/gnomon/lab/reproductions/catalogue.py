"""Every reproduction by name. One file beside this one is one publication; it defines `REPRODUCTION`."""

import pkgutil
from functools import cache
from importlib import import_module
from pathlib import Path

from gnomon.errors import unknown
from gnomon.lab.reproductions.frame import Reproduction


@cache
def reproductions() -> dict[str, Reproduction]:
    """All of them."""
    package = __package__ or "gnomon.lab.reproductions"
    modules = [
        import_module(f"{package}.{m.name}")
        for m in pkgutil.iter_modules([str(Path(__file__).parent)])
        if m.name not in ("catalogue", "frame", "report", "exact_answers")
    ]
    found = [module.REPRODUCTION for module in modules]
    return {r.name: r for r in found}


def reproduction(name: str) -> Reproduction:
    """The one of that name; BadValue names the nearest."""
    if name not in reproductions():
        raise unknown("reproduction", name, reproductions())
    return reproductions()[name]


__all__ = ["reproduction", "reproductions"]
