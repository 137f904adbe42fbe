"""What classes say of themselves: formulas, and which encodings are near each other."""

import pytest

from gnomon.positions import PositionEncoding, encoding, names
from gnomon.positions.kinship import formula, nearest, properties

OURS = [name for name in names() if encoding(name).__module__.startswith("gnomon.")]


@pytest.mark.parametrize("name", OURS)
def test_every_encoding_has_a_formula(name):
    lines = formula(encoding(name)).splitlines()
    assert lines
    assert all(line == line.rstrip() for line in lines)
    assert min(len(line) - len(line.lstrip()) for line in lines) == 0


def test_a_formula_of_your_own_is_stated_or_stands_in_the_docstring():
    class Doubled(PositionEncoding):
        """Twice.

            y = 2 x
            z = y

        And no more.
        """

        name = "doubled"

    class Stated(PositionEncoding):
        """Nothing."""

        name = "stated"
        formula = "y = x"

    Doubled.__module__ = Stated.__module__ = "elsewhere"
    assert formula(Doubled) == "y = 2 x\nz = y"
    assert formula(Stated) == "y = x"


def test_the_nearest_act_at_the_same_place_and_share_most():
    found = dict(nearest(encoding("kerple")))
    assert found[encoding("t5")] == []
    assert found[encoding("alibi")] == ["learns"]
    for name in ("rope", "sinusoidal", "alibi"):
        assert nearest(encoding(name))[0][0].acts == encoding(name).acts


@pytest.mark.parametrize("name", OURS)
def test_what_differs_is_what_differs_and_distance_is_symmetric(name):
    cls = encoding(name)
    for other, differs in nearest(cls, len(names())):
        mine, theirs = properties(cls), properties(other)
        assert {key for key in mine if mine[key] != theirs[key]} == set(differs)
    assert cls not in [other for other, _ in nearest(cls, len(names()))]
