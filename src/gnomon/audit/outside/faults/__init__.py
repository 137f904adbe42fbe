"""Outside faults: mistakes in models of Gnomon, of transformers and of students, to show that the laws can see them.

>>> from gnomon.audit.outside.faults import FAULTS
>>> with FAULTS["one token ahead"].seeded() as target:
...     gn.audit(target, only=["causality"]).ok
False
"""

import importlib

from gnomon.audit.outside.faults.fault import Fault

#: the files of this package, each with a list FAULTS; they import the library that they break only when one is built
ROOMS = ("gnomon", "transformers", "students")

FAULTS: dict[str, Fault] = {
    fault.name: fault for room in ROOMS for fault in importlib.import_module(f"{__name__}.{room}").FAULTS
}

__all__ = ["FAULTS", "ROOMS", "Fault"]
