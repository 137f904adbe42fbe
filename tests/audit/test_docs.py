"""The page about the audit is the audit's: its tables are those that the command makes."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from faults.students import TWINS

from gnomon.audit import LAWS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def command() -> ModuleType:
    spec = importlib.util.spec_from_file_location("laws_command", ROOT / "benchmarks" / "laws.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_of_the_page_are_current(command: ModuleType) -> None:
    page = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
    assert command.written(page) == page, "python benchmarks/laws.py --write"
    assert command.written(page.replace("| causality |", "| casuality |")) == page


def test_every_law_and_every_error_has_its_line(command: ModuleType) -> None:
    page = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
    for law in LAWS.values():
        assert f"\n| {law.name} | {law.sentence.replace('|', chr(92) + '|')} |" in page
    for twin in TWINS:
        assert page.count(twin.story) == 1
