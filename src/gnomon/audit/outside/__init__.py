"""The laws pointed at anybody's model: targets, adapters, laws, reports."""

from gnomon.audit.outside.adapters import Torch, target
from gnomon.audit.outside.laws import RULES
from gnomon.audit.outside.report import Report
from gnomon.audit.outside.rule import Evidence, Finding, Rule, rule
from gnomon.audit.outside.run import Interrupted, audit, check, laws_of
from gnomon.audit.outside.target import Because, Target

__all__ = [
    "RULES", "Because", "Evidence", "Finding", "Interrupted", "Report", "Rule", "Target", "Torch", "audit", "check",
    "laws_of", "rule", "target",
]  # fmt: skip
