"""Mutants: faults that people really make, seeded into Gnomon's own code to show that a law can see them.

>>> from gnomon.audit.mutants import MUTANTS
>>> with MUTANTS["documents leak"].seeded():
...     pass  # attention now runs across packed documents
"""

from gnomon.audit.mutants import attention, caches, layouts, rotations, sources, tables, weights
from gnomon.audit.mutants.mutant import Mutant

MUTANTS: dict[str, Mutant] = {
    found.name: found
    for room in (layouts, caches, rotations, tables, attention, weights, sources)
    for found in vars(room).values()
    if isinstance(found, Mutant)
}

__all__ = ["MUTANTS", "Mutant"]
