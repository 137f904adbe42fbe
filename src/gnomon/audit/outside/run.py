"""An audit: every law asked about one model.

>>> import gnomon as gn
>>> model = gn.DecoderOnly(vocab_size=32, d_model=16, n_layers=2, n_heads=2, position="rope")
>>> gn.audit(model, only=["causality"])["causality"].verdict
'pass'
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gnomon.audit.outside.adapters import target as adapted
from gnomon.audit.outside.laws import RULES
from gnomon.audit.outside.report import Report
from gnomon.audit.outside.rule import LENGTH, Finding, Rule
from gnomon.audit.outside.target import Target
from gnomon.errors import unknown

Progress = Callable[[int, int, str], None]


def audit(
    model: Any,
    *,
    only: Iterable[str] = (),
    skip: Iterable[str] = (),
    seed: int = 0,
    length: int = LENGTH,
    progress: Progress | None = None,
) -> Report:
    """Ask every law about a model and report what it breaks.

    model     a Target, a model of Gnomon, transformers, x-transformers or litgpt, any torch module or function from ids
              (B, T) to logits (B, T, V)
    only      names of the laws to ask; skip: names of those to leave out
    seed      of all that is drawn: the same seed gives the same report
    length    tokens of the inputs
    progress  called before each law with its number, how many there are and its name

    Raises BadValue for a law that is not known.
    """
    subject = adapted(model, seed)
    rules = chosen(only, skip)
    findings: list[Finding] = []
    for n, found in enumerate(rules):
        if progress is not None:
            progress(n, len(rules), found.name)
        findings.append(found(subject, length))
    return Report(subject.name, about(subject), tuple(findings))


def check(model: Any, *, only: Iterable[str] = (), skip: Iterable[str] = (), seed: int = 0) -> None:
    """Raise AssertionError with the report unless the model obeys every law: one line in anybody's own tests.

    def test_positions():
        gn.audit.check(MyModel())
    """
    report = audit(model, only=only, skip=skip, seed=seed)
    assert report.ok, f"\n{report}"


def chosen(only: Iterable[str], skip: Iterable[str]) -> Sequence[Rule]:
    """The laws asked for, in their own order."""
    only, skip = list(only), list(skip)
    for name in (*only, *skip):
        if name not in RULES:
            raise unknown("law", name, RULES)
    return [found for name, found in RULES.items() if (not only or name in only) and name not in skip]


def about(t: Target) -> dict[str, Any]:
    """What a report says of its target."""
    said: dict[str, Any] = {
        "architecture": t.architecture, "layers": t.layers, "vocab": t.vocab,
        "dtype": str(t.dtype).removeprefix("torch."), "seed": t.seed,
    }  # fmt: skip
    return said


__all__ = ["Progress", "about", "audit", "check", "chosen"]
