"""Audit: laws that every Transformer must obey, asked of any model.

>>> import gnomon as gn
>>> model = gn.DecoderOnly(vocab_size=32, d_model=16, n_layers=2, n_heads=2, position="rope")
>>> gn.audit(model, only="causality")["causality"].verdict
'pass'
>>> gn.audit.LAWS["causality"].sentence
'Changing a token changes no logits before it.'

`LAWS` holds what `gn.audit` asks: laws about anybody's model, about position modules by themselves, and about the parts
of our own models. Our tests ask them of ourselves, with faults seeded into the code that each of them must see.
"""

import sys
from types import ModuleType

from gnomon.audit.adapters import Torch, target
from gnomon.audit.finding import Finding
from gnomon.audit.law import Evidence, Law, law
from gnomon.audit.laws import LAWS
from gnomon.audit.report import AuditReport
from gnomon.audit.run import Interrupted, audit, check, laws_of
from gnomon.audit.small import SmallModel
from gnomon.audit.target import Because, NotApplicable, Target


class _Room(ModuleType):
    """This package, which can be called: gn.audit(model)."""

    __call__ = staticmethod(audit)


sys.modules[__name__].__class__ = _Room

__all__ = [
    "LAWS",
    "AuditReport",
    "Because",
    "Evidence",
    "Finding",
    "Interrupted",
    "Law",
    "NotApplicable",
    "SmallModel",
    "Target",
    "Torch",
    "audit",
    "check",
    "law",
    "laws_of",
    "target",
]
