"""Nothing in the package unpickles or evaluates what a file says; SECURITY.md promises it."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "gnomon"
UNPICKLERS = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
EVALUATORS = {"eval", "exec", "compile", "__import__"}
LOADERS = {"torch.load", "np.load", "numpy.load"}


def dangers(code: str) -> list[int]:
    """Lines that import an unpickler, evaluate text, or load what may be a pickle."""
    return sorted(node.lineno for node in ast.walk(ast.parse(code)) if _is_dangerous(node))


def _is_dangerous(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] in UNPICKLERS for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").partition(".")[0] in UNPICKLERS and not node.level
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name):
        return node.func.id in EVALUATORS
    given = {k.arg: ast.unparse(k.value) for k in node.keywords}
    called = ast.unparse(node.func)
    if called == "torch.load":
        return given.get("weights_only") != "True"
    return called in LOADERS and given.get("allow_pickle", "False") != "False"


@pytest.mark.parametrize(
    ("code", "bad"),
    [
        ("import pickle", True),
        ("def f():\n    from pickle import loads", True),
        ("import dill.source", True),
        ("eval('1')", True),
        ("exec(text)", True),
        ("torch.load(file)", True),
        ("torch.load(file, weights_only=False)", True),
        ("np.load(file, allow_pickle=True)", True),
        ("torch.load(file, weights_only=True)", False),
        ("np.load(file)", False),
        ("model.eval()\nast.literal_eval(text)\nmodel.compile()", False),
        ("from gnomon import pickle_error", False),
    ],
)
def test_the_rule_sees_what_runs_a_files_code(code, bad):
    assert bool(dangers(code)) is bad


def test_nothing_in_the_package_runs_what_a_file_says():
    found = {file.name: dangers(file.read_text(encoding="utf-8")) for file in PACKAGE.rglob("*.py")}
    assert {name: lines for name, lines in found.items() if lines} == {}
