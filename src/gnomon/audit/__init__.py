"""Audit: laws that every model must obey, and mutants (seeded faults) that show that the laws can see.

`gn.audit(model)` asks the laws that anybody's model can be asked (`gnomon.audit.outside`). Those in LAWS look into
Gnomon's own parts and build their subjects themselves:

>>> import gnomon as gn
>>> gn.audit.LAWS["shift invariance"](gn.audit.Subject.of("rope")).verdict
'pass'
>>> with gn.audit.MUTANTS["keys are not rotated"].seeded():
...     gn.audit.LAWS["shift invariance"](gn.audit.Subject.of("rope")).verdict
'fail'
"""

import sys
from types import ModuleType

from gnomon.audit.law import Evidence, Law, Outcome, judge, law
from gnomon.audit.laws import LAWS
from gnomon.audit.mutants import MUTANTS, Mutant
from gnomon.audit.outside import RULES, Because, Finding, Interrupted, Report, Target, Torch, check, laws_of, target
from gnomon.audit.outside.run import audit
from gnomon.audit.subject import Model, NotApplicable, Subject


class _Room(ModuleType):
    """This package, which can be called: gn.audit(model)."""

    __call__ = staticmethod(audit)


sys.modules[__name__].__class__ = _Room

__all__ = [
    "LAWS", "MUTANTS", "RULES", "Because", "Evidence", "Finding", "Interrupted", "Law", "Model", "Mutant",
    "NotApplicable", "Outcome", "Report", "Subject", "Target", "Torch", "check", "judge", "law", "laws_of", "target",
]  # fmt: skip
