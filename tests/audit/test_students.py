"""A tutorial's usual errors: each is named by the law for it, and the model without them breaks none."""

from pathlib import Path

import pytest
from faults import students
from faults.students import TWINS, Twin

from gnomon.audit import LAWS, audit

EXAMPLES = Path(__file__).parents[2] / "examples" / "audit"
named = pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)


def test_the_healthy_student_breaks_no_law():
    report = audit(students.made(students.HEALTHY))
    assert report.failed == ()
    asked = {twin.law.name for twin in TWINS}
    assert {f.law for f in report.of("pass")} >= asked


@named
def test_each_error_fails_the_law_for_it_and_is_called_by_its_name(twin: Twin):
    found = audit(students.made(twin.source()), only=[twin.law.name])[twin.law.name]
    assert found.verdict == "FAIL"
    assert twin.says in found.note


@pytest.mark.slow
@named
def test_each_error_breaks_no_law_that_has_nothing_to_do_with_it(twin: Twin):
    """A wrong mask and heads that meet are seen by laws of order and of the cache, what is never called by that of
    parts; all others by their own law alone."""
    alone = {
        "the mask is the wrong way round",
        "positions from a length",
        "positions are never added",
        "heads are not turned back",
        "a layer is made in forward",
    }
    failed = {f.law for f in audit(students.made(twin.source())).failed}
    assert failed >= {twin.law.name}
    assert twin.name in alone or failed == {twin.law.name}


@named
def test_a_student_may_know_nothing_of_adapters(twin: Twin):
    """The bare model, as somebody hands it over: what needs no cache, loss or promise is found all the same."""
    report = audit(students.made(twin.source()).module, only=[twin.law.name])
    needs_more = {"cached = full", "labels are shifted once", "a plain read leaves the cache alone"}
    assert report[twin.law.name].verdict == ("not applicable" if twin.law.name in needs_more else "FAIL")


def test_the_examples_are_what_the_command_writes(tmp_path):
    students.write(tmp_path)
    written = {file.name: file.read_text() for file in tmp_path.iterdir()}
    there = {file.name: file.read_text() for file in EXAMPLES.glob("*.py")}
    assert there.pop("student.py") == students.HEALTHY
    assert there == written


def test_an_edit_that_finds_nothing_is_an_error():
    with pytest.raises(ValueError, match="stands 0 times"):
        Twin("n", "k", "s", LAWS["causality"], "", {"nowhere": ""}).source()
