"""Audit: laws that every model must obey, and mutants (seeded faults) that show that the laws can see.

>>> import gnomon as gn
>>> gn.audit.LAWS["shift invariance"](gn.audit.Subject.of("rope")).verdict
'pass'
>>> with gn.audit.MUTANTS["keys are not rotated"].seeded():
...     gn.audit.LAWS["shift invariance"](gn.audit.Subject.of("rope")).verdict
'fail'
"""

from gnomon.audit.law import Evidence, Law, Outcome, judge, law
from gnomon.audit.laws import LAWS
from gnomon.audit.mutants import MUTANTS, Mutant
from gnomon.audit.subject import Model, NotApplicable, Subject

__all__ = [
    "LAWS", "MUTANTS", "Evidence", "Law", "Model", "Mutant", "NotApplicable", "Outcome", "Subject", "judge", "law",
]  # fmt: skip
