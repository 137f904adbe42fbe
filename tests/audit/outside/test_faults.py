"""Every outside fault is seen by the law named for it, and no law accuses its healthy twin."""

import importlib

import pytest

from gnomon.audit import RULES
from gnomon.audit.outside.faults import FAULTS, ROOMS, room_of
from gnomon.audit.outside.run import audit


@pytest.mark.slow  # of each law one fault is planted in test_laws.py too
@pytest.mark.parametrize("name", FAULTS)
def test_the_named_law_kills_the_fault_and_not_its_healthy_twin(name):
    fault = FAULTS[name]
    law = RULES[fault.law]
    assert law(fault.healthy()).verdict == "pass"
    with fault.seeded() as target:
        found = law(target)
    assert found.verdict == "FAIL", found
    assert "raised" not in found.note  # seen, not stumbled over


@pytest.mark.slow  # minutes: some sixty laws about each of them
@pytest.mark.parametrize("name", FAULTS)
def test_no_law_at_all_accuses_a_healthy_twin(name):
    assert audit(FAULTS[name].healthy()).failed == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["holes are counted", "the window is one too wide", "a tied copy"])
def test_no_law_accuses_these_healthy_twins(name):
    """One of each room, in a short time."""
    assert audit(FAULTS[name].healthy()).failed == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_gone_when_its_with_ends(name):
    fault = FAULTS[name]
    with pytest.raises(ZeroDivisionError), fault.seeded():
        raise ZeroDivisionError
    assert RULES[fault.law](fault.healthy()).verdict == "pass"


def test_faults_are_many_of_many_kinds_in_models_of_many_people():
    rooms = [room_of(fault) for fault in FAULTS.values()]
    assert len(FAULTS) >= 30
    assert len({fault.kind for fault in FAULTS.values()}) >= 15
    assert rooms.count("Gnomon") >= 12
    assert rooms.count("transformers") >= 10
    assert set(rooms) == set(ROOMS)


def test_no_two_faults_have_one_name():
    rooms = [importlib.import_module(f"gnomon.audit.outside.faults.{file}").FAULTS for file in ROOMS.values()]
    assert len(FAULTS) == sum(map(len, rooms))


def test_every_fault_tells_its_story():
    assert all(fault.story.endswith(".") and len(fault.story.split()) >= 6 for fault in FAULTS.values())
