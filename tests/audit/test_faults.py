"""Every fault is seen by the laws named for it, none of which accuses its healthy twin; every law has such a fault."""

import contextlib
import re
import sys
from pathlib import Path

import pytest
from faults import FAULTS, ROOMS, OurFault, room_of

import gnomon as gn
from gnomon.audit import LAWS
from gnomon.audit.finding import UNASKED

OURS = [name for name, fault in FAULTS.items() if isinstance(fault, OurFault)]
THEIRS = [name for name, fault in FAULTS.items() if room_of(fault) == "transformers"]


@pytest.mark.parametrize("name", FAULTS)
def test_the_named_laws_see_the_fault_and_pass_its_healthy_twin(name):
    fault = FAULTS[name]
    healthy = fault.healthy()
    assert {law.name: law(healthy).verdict for law in fault.laws} == {law.name: "pass" for law in fault.laws}
    with fault.seeded() as target:
        found = [law(target) for law in fault.laws]
    assert [f.verdict for f in found] == ["FAIL"] * len(found), found
    assert fault.says in found[0].note


def test_every_law_has_a_fault_that_kills_it():
    assert {law.name for fault in FAULTS.values() for law in fault.laws} == set(LAWS)
    assert all(LAWS[law.name] is law for fault in FAULTS.values() for law in fault.laws)


@pytest.mark.slow
@pytest.mark.parametrize("name", OURS)
def test_no_law_passes_wherever_its_fault_lives(name):
    """It fails, or says that this encoding cannot show it: fails, if a named encoding is one of few."""
    fault = FAULTS[name]
    verdicts = {}
    for home in fault.homes:
        with contextlib.suppress(gn.audit.NotApplicable), fault.seeded_in(home) as target:  # one-sided, both ways
            verdicts[home] = [law(target) for law in fault.laws]
    shown = {f.verdict for found in verdicts.values() for f in found}
    assert "FAIL" in shown
    assert shown <= {"FAIL", "not observable", "not applicable"}, verdicts
    assert not any(f.note.startswith(UNASKED) for found in verdicts.values() for f in found), verdicts


@pytest.mark.slow
@pytest.mark.parametrize("name", THEIRS)
def test_no_law_at_all_accuses_a_healthy_twin(name):
    """Those of our own code have tests of their own, and so has the student."""
    assert gn.audit(FAULTS[name].healthy()).failed == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", OURS)
def test_a_fault_is_gone_when_its_with_ends(name):
    """Not a byte of the package differs after a fault has been in and out, an error inside notwithstanding."""
    before = fingerprint()
    with contextlib.suppress(ZeroDivisionError), FAULTS[name].plant():
        assert fingerprint() != before
        raise ZeroDivisionError
    assert fingerprint() == before


@pytest.mark.slow
@pytest.mark.parametrize("name", THEIRS)
def test_a_librarys_fault_is_gone_when_its_with_ends(name):
    fault = FAULTS[name]
    with pytest.raises(ZeroDivisionError), fault.seeded():
        raise ZeroDivisionError
    assert fault.law(fault.healthy()).verdict == "pass"


def fingerprint() -> dict[str, int]:
    """The identity of every function, class and registry entry of the package outside the audit."""
    found = {}
    for module in [m for n, m in sorted(sys.modules.items()) if re.match(r"gnomon(\.(?!audit)|$)", n)]:
        for key, value in vars(module).items():
            found[f"{module.__name__}.{key}"] = id(value)
            if isinstance(value, type) and value.__module__.startswith("gnomon"):
                found |= {f"{module.__name__}.{key}.{k}": id(v) for k, v in vars(value).items() if callable(v)}
            if isinstance(value, dict) and key == "KERNELS":
                found |= {f"{key}.{k}": id(v) for k, v in value.items()}
    return found


def test_faults_are_many_of_many_kinds_in_models_of_many_people():
    rooms = [room_of(fault) for fault in FAULTS.values()]
    assert len(FAULTS) >= 200
    assert len({fault.kind for fault in FAULTS.values()}) >= 25
    assert rooms.count("Gnomon") >= 100
    assert rooms.count("transformers") >= 20
    assert set(ROOMS.values()) < set(rooms)


def test_every_fault_tells_its_story():
    told = [fault for fault in FAULTS.values() if room_of(fault) in ROOMS.values()]
    assert all(fault.story.endswith(".") and len(fault.story.split()) >= 6 for fault in told)
    assert all(set(FAULTS[name].homes) <= set(gn.positions.names()) for name in OURS)


def test_the_front_page_counts_laws_and_faults():
    text = " ".join((Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8").split())
    assert f"{len(LAWS)} laws" in text
    assert f"{len(FAULTS)} seeded faults" in text


def test_no_fault_is_shipped():
    shipped = [file.name for file in Path(gn.audit.__file__).parent.rglob("*.py")]
    assert not any(re.search("fault|mutant|planted|student", name) for name in shipped)
