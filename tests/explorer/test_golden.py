"""The numbers that the page's own arithmetic is tested against are the library's of today."""

import json
import math
import runpy

import pytest


def differing(found, expected, path=""):
    """Places where two nested lists of numbers are further apart than rounding puts them on another processor."""
    if isinstance(expected, dict):
        return [
            d
            for key in expected.keys() | found.keys()
            for d in differing(found.get(key), expected.get(key), f"{path}.{key}")
        ]
    if isinstance(expected, list) and isinstance(found, list) and len(found) == len(expected):
        pairs = enumerate(zip(found, expected, strict=True))
        return [d for i, (a, b) in pairs for d in differing(a, b, f"{path}[{i}]")]
    if isinstance(expected, float | int) and isinstance(found, float | int):
        return [] if math.isclose(found, expected, rel_tol=1e-7, abs_tol=1e-8) else [path]
    return [] if found == expected else [path]


def test_a_number_that_is_off_is_seen():
    assert differing({"a": [1.0, 2.0]}, {"a": [1.0, 2.001]}) == [".a[1]"]
    assert differing({"a": [1.0]}, {"a": [1.0, 2.0]}) == [".a"]


@pytest.mark.slow
def test_the_golden_numbers_are_current(root):
    made = json.loads(runpy.run_path(str(root / "explorer" / "golden.py"))["text"]())
    kept = json.loads((root / "explorer" / "golden.json").read_text(encoding="utf-8"))
    assert differing(made, kept) == [], "write them anew: make web"
