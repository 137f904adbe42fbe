"""An audit: every law asked about one model.

>>> import gnomon as gn
>>> model = gn.DecoderOnly(vocab_size=32, d_model=16, n_layers=2, n_heads=2, position="rope")
>>> gn.audit(model, only=["causality"])["causality"].verdict
'pass'
"""

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from gnomon.audit.adapters import target as adapted
from gnomon.audit.consequences import attribute_root_causes
from gnomon.audit.finding import Finding
from gnomon.audit.law import LENGTH, Law
from gnomon.audit.laws import LAWS
from gnomon.audit.outputs.words import headline
from gnomon.audit.report import AuditReport
from gnomon.audit.target import Target
from gnomon.errors import unknown
from gnomon.glossary import message

Progress = Callable[[int, int, str], None]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during an audit; `report` holds the findings made before it."""

    def __init__(self, report: AuditReport, asked: int) -> None:
        """asked: how many laws there were."""
        super().__init__(f"interrupted after {len(report.findings)} of {asked} laws")
        self.report = report


def audit(
    model: Any,
    *,
    only: str | Iterable[str] = (),
    skip: str | Iterable[str] = (),
    seed: int = 0,
    length: int = LENGTH,
    progress: Progress | None = None,
) -> AuditReport:
    """Ask every law about a model and report what it breaks.

    model     a Target, a model of Gnomon, transformers, x-transformers or litgpt, any torch module or function from ids
              (B, T) to logits (B, T, V)
    only      names of the laws to ask, or how they begin, one or several; skip: of those to leave out
    seed      of all that is drawn: the same seed gives the same report
    length    tokens of the inputs
    progress  called before each law with its number, how many there are and its name, and once after the last

    Raises BadValue for a law that is not known, and Interrupted (a KeyboardInterrupt that holds what was found so far)
    at Ctrl-C.
    """
    with _restore_modes(model), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        subject = adapted(model, seed)
        rules = [found for found in select(only, skip) if only or found.concerns(subject)]
        tell = progress or _silent
        findings: list[Finding] = []
        try:
            for n, found in enumerate(rules):
                tell(n, len(rules), found.name)
                findings.append(found(subject, length))
            tell(len(rules), len(rules), "")
        except KeyboardInterrupt:
            raise Interrupted(AuditReport(subject.name, about(subject, length), tuple(findings)), len(rules)) from None
        return AuditReport(subject.name, about(subject, length), attribute_root_causes(findings))


@contextmanager
def _restore_modes(model: Any) -> Iterator[None]:
    """Adapters put a model into evaluation; afterwards each of its modules is in the mode it was in."""
    modules = list(model.modules()) if isinstance(model, nn.Module) else []
    modes = [module.training for module in modules]
    try:
        yield
    finally:
        for module, training in zip(modules, modes, strict=True):
            module.training = training


def check(model: Any, *, only: str | Iterable[str] = (), skip: str | Iterable[str] = (), seed: int = 0) -> None:
    """Raise AssertionError with the report unless the model obeys every law: one line in anybody's own tests.

    Its first line says what is broken. It is raised, too, if no law could be judged: such a test would show nothing.

    def test_positions():
        gn.audit.check(MyModel())
    """
    report = audit(model, only=only, skip=skip, seed=seed)
    assert report.ok, f"{headline(report)}\n\n{report}"
    assert report.judged, headline(report)


def laws_of(
    make: Callable[[], Any], *, only: str | Iterable[str] = (), skip: str | Iterable[str] = (), seed: int = 0
) -> Callable[[str], None]:
    """A test function for pytest that asks each law as a test of its own, so that one that fails is seen by its name.

    test_my_model = gn.audit.laws_of(MyModel)

    make is called once, when the first law is asked, and returns the model. A law that does not apply, cannot be seen
    or is broken by design is skipped, with the reason. Raises BadValue for a law that is not known, and
    ImportError without pytest.
    """
    import pytest

    subject = cache(lambda: adapted(make(), seed))

    @pytest.mark.parametrize("law", [found.name for found in select(only, skip)])
    def test(law: str) -> None:
        if not LAWS[law].concerns(subject()):
            pytest.skip(f"{subject().name} is none of the things this law speaks of")
        report = audit(subject(), only=[law], seed=seed)
        found = report[law]
        if found.verdict not in ("pass", "FAIL"):
            pytest.skip(f"{found.verdict}: {found.note} {found.link}".rstrip())
        assert report.ok, f"{headline(report)}\n\n{report}"

    return test


def select(only: str | Iterable[str], skip: str | Iterable[str]) -> Sequence[Law]:
    """The laws asked for, in their own order; a name may be the beginning of names, and one may stand alone."""
    only, skip = ([names] if isinstance(names, str) else names for names in (only, skip))
    asked = {name for text in only for name in laws_named(text)} or set(LAWS)
    left_out = {name for text in skip for name in laws_named(text)}
    return [found for name, found in LAWS.items() if name in asked - left_out]


def laws_named(text: str) -> list[str]:
    """The law of this name, else all whose names begin so. Raises BadValue where there is none."""
    found = [text] if text in LAWS else [name for name in LAWS if text and name.startswith(text)]
    if not found:
        raise unknown("law", text, LAWS)
    return found


def about(t: Target, length: int = LENGTH) -> dict[str, Any]:
    """What a report says of its target and of how it was asked."""
    dtype = str(t.dtype).removeprefix("torch.")
    known: dict[str, Any] = {
        "architecture": t.architecture,
        "layers": t.layers,
        "vocabulary": t.vocab,
        "dtype": dtype,
        "device": str(t.device),
        "tokens": length,
        "seed": t.seed,
        "defined": _definition(t),
        "gnomon": vars(sys.modules["gnomon"])["__version__"],
        "torch": torch.__version__,
        "answers": _describe_lengths(t.lengths),
        "not told": ", ".join(f"{name} ({by}=)" for name, by in t.unused_arguments),
        "tolerated": message("audit", "tolerance", dtype=dtype),
    }
    return {name: value for name, value in known.items() if value != ""}


def _describe_lengths(lengths: frozenset[int] | None) -> str:
    """Which texts are answered, where not all are: "texts of 5 tokens only"; "" where all are, up to some length."""
    if lengths is None or lengths == frozenset(range(1, max(lengths) + 1)):
        return ""
    first, *others = sorted(lengths)
    if others and lengths == frozenset(range(first, max(lengths) + 1)):
        return f"texts of {first} tokens or more only"
    shown = [str(n) for n in (first, *others)]
    return f"texts of {', '.join(shown[:6]) + (', ..' if len(shown) > 6 else '')} tokens only"


def _definition(t: Target) -> str:
    """File and line of the model's class where it is below the current folder; else nothing."""
    if "module" not in t.can:
        return ""
    model = type(t.module)
    try:
        file = Path(inspect.getsourcefile(model) or "").resolve().relative_to(Path.cwd())
        return f"{file.as_posix()}:{inspect.getsourcelines(model)[1]}"
    except (OSError, TypeError, ValueError):  # typed into a notebook, built in, or elsewhere
        return ""


def _silent(done: int, total: int, law: str) -> None:
    """Progress that nobody watches."""


__all__ = ["Interrupted", "Progress", "about", "audit", "check", "laws_named", "laws_of", "select"]
