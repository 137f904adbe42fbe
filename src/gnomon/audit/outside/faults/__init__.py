"""Outside faults: mistakes in models of Gnomon, of transformers and of students, to show that the laws can see them.

>>> from gnomon.audit.outside.faults import FAULTS
>>> with FAULTS["one token ahead"].seeded() as target:
...     gn.audit(target, only=["causality"]).ok
False
"""

import importlib

from gnomon.audit.outside.faults.fault import Fault

#: whose models are broken -> the file of this package with its FAULTS; the library itself is imported when one is built
ROOMS = {"Gnomon": "gnomon", "transformers": "transformers", "a student's model": "students"}

FAULTS: dict[str, Fault] = {
    fault.name: fault for file in ROOMS.values() for fault in importlib.import_module(f"{__name__}.{file}").FAULTS
}


def room_of(fault: Fault) -> str:
    """Whose model it is in."""
    return next(room for room, file in ROOMS.items() if fault in importlib.import_module(f"{__name__}.{file}").FAULTS)


__all__ = ["FAULTS", "ROOMS", "Fault", "room_of"]
