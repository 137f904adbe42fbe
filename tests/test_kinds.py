"""Whether a value is of an annotated kind: one answer, for arguments, for files and for settings."""

from collections.abc import Callable, Mapping, Sequence
from math import nan
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

import pytest

from gnomon.errors import BadValue, must_be
from gnomon.kinds import Setting, fits, in_words


class Waits(Protocol):
    def wait(self) -> None: ...


SHARE = Annotated[float | None, Setting("a share", least=0, below=1)]
WINDOWS = Annotated[int | Sequence[int | None] | None, Setting("seen", least=1)]


KINDS = [  # a kind, values of it, and others
    (int, [3, 0, 10**400], [True, 3.0, "3", None]),
    (float, [3, 3.0, nan, 2**1000], [False, "3", 10**400, 3j]),
    (bool, [True], [1, 0, None]),
    (str | None, ["", None], [b"", 0]),
    (None, [None], [0, False, ""]),
    (Literal["a", 1, None], ["a", 1, None], [True, 1.0, "b", [], {}]),
    (bool | Literal["joint"], [True, "joint"], [1, "Joint"]),
    (list[str], [["a"], ("a",), []], [["a", 1], "a", {"a"}]),
    (tuple[int, ...], [(1,), [1], ()], [(1, "a"), 1, (True,)]),
    (tuple[int, str], [(1, "a"), [1, "a"]], [(1,), ("a", 1), (1, "a", 2)]),
    (Sequence[int | None], [[1, None], (2,)], [["a"], 3, {1}]),
    (Mapping[str, int], [{"a": 1}, {}], [{"a": "b"}, {1: 1}, []]),
    (Mapping, [{}], [[], None]),
    (Path, [Path()], ["."]),
    (type, [int], [3]),
    (Callable[[int], int], [abs], [3]),
    (Any, [object(), None], []),
    (object, [object(), None], []),
    (Waits, [object()], []),
    (SHARE, [0, 0.5, None], [1, 1.0, -0.1, nan, "0", True]),
    (WINDOWS, [3, None, [4, None], (1,)], [0, [4, 0], [True], "4"]),
]


def test_a_value_is_of_a_kind_or_is_refused():
    for kind, good, bad in KINDS:
        for value in good:
            assert fits(value, kind)
            must_be("it", value, kind)
        for value in bad:
            assert not fits(value, kind)
            with pytest.raises(BadValue, match=r"^(it must be|unknown it)"):
                must_be("it", value, kind)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (int | None, "a whole number or none"),
        (Literal["a", "b"] | float, "'a' or 'b' or a number"),
        (list[str], "a list, each of it a text"),
        (SHARE, "a number at least 0 and below 1 or none"),
        (WINDOWS, "a whole number at least 1 or a list of these or none"),
        (Annotated[int, Setting("n", least=1, most=2**31)], "a whole number between 1 and 2**31"),
        (Path | Setting, "a path or a Setting"),
    ],
)
def test_a_kind_has_words(kind, words):
    assert in_words(kind) == words
