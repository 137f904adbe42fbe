"""The style of the house: names a reader can say, no references that only insiders can follow, few exceptions.

As in test_house.py, each rule lists what breaks it, and is asked about a small bad example too.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LETTERS = 80  #: of the name of a test
#: how often each may stand in src/: lower these when you can
CAPS = {"# fmt: skip": 1, "# type: ignore": 25}
TEST = re.compile(r"^ *def (test_\w+)", re.MULTILINE)
REFERENCE = re.compile(r"(?<![\w.])[(\[\"# ;]S\d{1,2}[):;,.]")


def texts(*folders: str, ends: str = ".py") -> dict[str, str]:
    """The text of each file below these folders, by its path."""
    files = sorted(file for folder in folders for file in (ROOT / folder).rglob(f"*{ends}"))
    return {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}


def long_names(text: str) -> list[str]:
    """Tests whose names are longer than a reader takes in at once."""
    return [name for name in TEST.findall(text) if len(name) > LETTERS]


def test_names_of_tests_are_short_enough_to_read():
    assert long_names(f"def {'test_' + 'x' * 75}(): ...\ndef {'test_' + 'x' * 76}(): ...") == ["test_" + "x" * 76]
    assert {path: found for path, text in texts("tests").items() if (found := long_names(text))} == {}


@pytest.mark.parametrize(
    ("line", "bad"),
    [
        ('"""Sinusoids (S3, S4)."""', True),
        ('"""Heads (Vaswani et al. 2017; S13)."""', True),
        ('"""S2: rows."""', True),
        ("x = 1  # S5: labels", True),
        ("T, S = q.shape[2], k.shape[2]", False),
        ("(B, H, T, S)", False),
        ("safetensors.numpy.S8", False),
    ],
)
def test_the_rule_sees_a_reference_to_a_list_nobody_has(line, bad):
    assert bool(REFERENCE.search(line)) is bad


def test_no_comment_refers_to_a_list_nobody_has():
    where = {**texts("src", "tests", "examples", "benchmarks"), **texts("docs", ends=".md")}
    del where["tests/test_style.py"]
    assert [path for path, text in where.items() if REFERENCE.search(text)] == []


def over_their_caps(code: dict[str, str], caps: dict[str, int]) -> list[str]:
    """Exceptions from the formatter's and the type checker's rules that became too many."""
    counts = {mark: sum(text.count(mark) for text in code.values()) for mark in caps}
    return [
        f"{mark} stands {n} times, at most {caps[mark]} are allowed" for mark, n in counts.items() if n > caps[mark]
    ]


def test_exceptions_stay_exceptions():
    assert over_their_caps({"a.py": "x  # fmt: skip\ny  # fmt: skip"}, {"# fmt: skip": 1}) != []
    assert over_their_caps(texts("src"), CAPS) == []
