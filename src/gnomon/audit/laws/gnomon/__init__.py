"""Laws that our own models alone can be asked: about caches that go back, layouts, kernels, encodings by themselves.

Each builds small models like the one that is audited (`Gnomon.small`), so that it may change a setting, and so that a
fault in a constructor shows. `LAWS` finds them as it finds all others.
"""

from collections.abc import Callable
from functools import wraps

from gnomon.audit.adapters.gnomon import Gnomon
from gnomon.audit.compare import largest
from gnomon.audit.law import Evidence, Law, Need, law
from gnomon.audit.small import SmallModel
from gnomon.shapes import Float


def small_law(
    name: str, *needs: Need, hint: str, source: str = "Gnomon's own tests", shown_by: str = "every encoding"
) -> Callable[[Callable[[SmallModel], Evidence]], Law]:
    """A law about a small model like the target, whatever the length of texts. See `law`."""

    def make(check: Callable[[SmallModel], Evidence]) -> Law:
        @wraps(check)
        def asked(t: Gnomon, n: int) -> Evidence:
            return check(t.small)

        return law(name, Gnomon, *needs, source=source, hint=hint, shown_by=shown_by, shrinks=False)(asked)

    return make


def make_evidence(got: Float, want: Float, fault: Float | None = None, slack: float = 1e-5) -> Evidence:
    """Evidence that tolerates this part of max(1, max|want|); 0 demands equal bits."""
    return Evidence(got, want, fault, None, slack * max(1.0, largest(want)))


__all__ = ["make_evidence", "small_law"]
