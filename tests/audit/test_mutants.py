"""Every seeded fault is seen by the law named for it, under every encoding in which it can live and show."""

import contextlib
import sys
from pathlib import Path

import pytest

import gnomon as gn
from gnomon.audit import LAWS, MUTANTS, judge
from gnomon.audit.mutants import Mutant


@pytest.mark.parametrize("name", MUTANTS)
def test_the_named_law_sees_the_mutant_and_passes_the_healthy_twin(name, subjects):
    """Under the first encoding that shows it; the next test asks the others."""
    mutant = MUTANTS[name]
    law, homes = LAWS[mutant.law], mutant.of or sorted(gn.positions.names(), key=lambda home: home != "sinusoidal")
    with mutant.seeded():
        seen = next((home for home in homes if any(law(s).verdict == "fail" for s in subjects(home))), None)
    assert seen is not None, f"{mutant.law} sees it under none of {homes}"
    assert judge(law, subjects(seen)).verdict == "pass"


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_no_law_passes_where_its_mutant_lives(name, subjects):
    """It fails, or says that this encoding cannot show it."""
    mutant = MUTANTS[name]
    with mutant.seeded():
        sick = {home: judge(LAWS[mutant.law], subjects(home)) for home in homes(mutant)}
    assert {outcome.verdict for outcome in sick.values()} <= {"fail", "not observable", "not applicable"}, sick
    assert not any("raised" in outcome.note for outcome in sick.values()), sick  # seen, not stumbled over


def homes(mutant: Mutant) -> list[str]:
    """Where it can live. The kernel of one number per distance never runs under a bias that is no function of it."""
    classes = [gn.positions.encoding(name) for name in mutant.of or gn.positions.names()]
    of_kernel = mutant.law.startswith("every kernel")
    return [cls.name for cls in classes if not (of_kernel and cls.acts == "score" and not cls.relative)]


# The encodings under which each kind of position fault shows; elsewhere it must be "not observable".
EVERY = set(gn.positions.names())
ALL_BUT_NONE = EVERY - {"none"}
ABSOLUTE = {name for name in ALL_BUT_NONE if not gn.positions.encoding(name).relative}
BY_NUMBER = {name for name in ALL_BUT_NONE if not gn.positions.encoding(name).order_only}
SHOWN_BY = {
    "left padding is counted": ABSOLUTE,
    "packed positions never restart": ABSOLUTE,
    "every step at position 0": BY_NUMBER,
    "decoding skips a position": BY_NUMBER,
    "evicted tokens are not counted": BY_NUMBER,
    "padding is seen": EVERY,
    "documents leak": EVERY,
    "ring buffer read by slot": EVERY,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHOWN_BY)
def test_a_fault_that_an_encoding_cannot_show_is_not_observable(name, subjects):
    law = LAWS[MUTANTS[name].law]
    with MUTANTS[name].seeded():
        verdicts = {encoding: judge(law, subjects(encoding)).verdict for encoding in gn.positions.names()}
    assert {encoding for encoding, verdict in verdicts.items() if verdict == "fail"} == SHOWN_BY[name]
    assert {v for encoding, v in verdicts.items() if encoding not in SHOWN_BY[name]} <= {"not observable"}


def test_every_law_has_a_mutant_and_every_mutant_a_law():
    assert {mutant.law for mutant in MUTANTS.values()} == set(LAWS)


def test_mutants_are_many_and_of_many_kinds():
    assert len(MUTANTS) >= 25
    assert len({mutant.kind for mutant in MUTANTS.values()}) >= 12


def test_every_mutant_tells_its_story():
    assert all(mutant.story.endswith(".") and len(mutant.story.split()) >= 6 for mutant in MUTANTS.values())
    assert all(set(mutant.of) <= set(gn.positions.names()) for mutant in MUTANTS.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_is_gone_when_its_with_ends(name):
    """Not a byte of the package differs after a mutant has been in and out, an error inside notwithstanding."""
    before = fingerprint()
    with contextlib.suppress(ZeroDivisionError), MUTANTS[name].seeded():
        assert fingerprint() != before
        raise ZeroDivisionError
    assert fingerprint() == before


def fingerprint() -> dict[str, int]:
    """The identity of every function, class and registry entry of the package outside the audit."""
    found = {}
    for module in [m for n, m in sorted(sys.modules.items()) if n.startswith("gnomon") and "audit" not in n]:
        for key, value in vars(module).items():
            found[f"{module.__name__}.{key}"] = id(value)
            if isinstance(value, type) and value.__module__.startswith("gnomon"):
                found |= {f"{module.__name__}.{key}.{k}": id(v) for k, v in vars(value).items() if callable(v)}
            if isinstance(value, dict) and key == "KERNELS":
                found |= {f"{key}.{k}": id(v) for k, v in value.items()}
    return found


def test_the_front_page_counts_laws_and_mutants():
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    assert f"{len(LAWS)} laws" in text
    assert f"{len(MUTANTS)} seeded faults" in " ".join(text.split())
