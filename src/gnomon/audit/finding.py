"""What a law found about one target: a verdict, and what shows it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Literal

Verdict = Literal["FAIL", "pass", "not observable", "by design", "not applicable"]
UNASKED = "could not be asked"  #: how the note of a law begins whose question made the model raise
TELLS = re.compile(r"Torch\(model, (\w+=)\.\.\.\)")  #: in a note: the argument that would let a law be asked
SHORT = "this law may need"  #: in a note: of a model that reads too few tokens


@dataclass(frozen=True)
class Finding:
    """The verdict of one law on one target."""

    law: str
    sentence: str
    verdict: Verdict
    error: float = 0.0
    tolerance: float = 0.0
    where: str = ""  #: of the largest error
    smallest: str = ""  #: input that shows the failure
    note: str = ""  #: the reason, the cause or the hint
    link: str = ""  #: where the target's documentation says that it is meant so
    source: str = ""  #: the paper or the fault behind the law

    def as_dict(self) -> Mapping[str, Any]:
        """For JSON: an infinite error is the word "inf"."""
        numbers = {k: v if abs(v) < inf else "inf" for k, v in (("error", self.error), ("tolerance", self.tolerance))}
        return {**self.__dict__, **numbers}

    @property
    def might_be_asked(self) -> bool:
        """Whether a law did not apply for want of a word, or because the model raised or reads too little."""
        wanting = self.note.startswith(UNASKED) or SHORT in self.note or TELLS.search(self.note) is not None
        return self.verdict == "not applicable" and wanting


__all__ = ["SHORT", "TELLS", "UNASKED", "Finding", "Verdict"]
