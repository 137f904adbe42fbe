"""Audit: laws that every model must obey, and mutants (seeded faults) that show that the laws can see."""

from gnomon.audit.law import Evidence, Law, Outcome, judge, law
from gnomon.audit.laws import LAWS
from gnomon.audit.mutants import MUTANTS, Mutant
from gnomon.audit.subject import Model, NotApplicable, Subject

__all__ = [
    "LAWS", "MUTANTS", "Evidence", "Law", "Model", "Mutant", "NotApplicable", "Outcome", "Subject", "judge", "law",
]  # fmt: skip
