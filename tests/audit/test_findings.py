"""What the audit found in other libraries is told beside a reproduction, and each reproduction is told of."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "benchmarks" / "findings").rglob("*.py"))
PAGE = (ROOT / "docs" / "audit-findings.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: f"{script.parent.name}/{script.stem}")
def test_a_reproduction_is_told_of_and_needs_the_library_alone(script):
    tree = ast.parse(script.read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert f"](../{script.relative_to(ROOT).as_posix()})" in PAGE
    assert ast.get_docstring(tree)
    assert not any(name.partition(".")[0] == "gnomon" for name in imported)
    assert any(isinstance(node, ast.Assert | ast.Raise) for node in ast.walk(tree)), "it cannot fail"


def test_there_are_findings():
    assert len(SCRIPTS) > 40
