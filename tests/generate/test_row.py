"""Rows: text that ends at a stop string however it arrives, and is never shown too early."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gnomon.data import Tokenizer
from gnomon.errors import BadValue
from gnomon.generate.row import Ends, Generation, Row, UntilStop

BYTES = Tokenizer.bytes()


def cut(text: str, stop: list[str]) -> str:
    """The definition: everything before the first place where a stop string begins."""
    return text[: min((at for at in map(text.find, stop) if at >= 0), default=len(text))]


def first_completed(text: str, stop: list[str]) -> str:
    """The definition of several: everything before the first stop string to be complete, the longest of equals."""
    for end in range(len(text) + 1):
        if any(text[:end].endswith(s) for s in stop):
            return cut(text[:end], [s for s in stop if text[:end].endswith(s)])
    return text


def written(pieces: list[str], stop: list[str]) -> tuple[list[str], bool]:
    until, out = UntilStop(stop), []
    for piece in pieces:
        out.append(until.push(piece))
        if until.stopped:
            return out, True
    return [*out, until.flush()], False


letters = st.text("ab", max_size=12)


@settings(max_examples=200, deadline=None)
@given(st.lists(letters, max_size=8), st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=3))
@example(["a", "b", "a", "b", "b"], ["abb"])
@example(["aab"], ["aab", "ab", "b"])
@example(["baaab"], ["aab", "a"])
def test_text_ends_at_the_first_stop_string_to_be_complete_however_it_is_split(pieces, stop):
    out, stopped = written(pieces, stop)
    whole = "".join(pieces)
    assert stopped == any(s in whole for s in stop)
    assert "".join(out) == first_completed(whole, stop)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(letters, st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=3), st.integers(0, 13))
@example("aab", ["aab", "ab"], 3)
def test_a_stop_string_completed_before_the_least_length_is_text(text, stop, least):
    """It ends the text where it is complete at the least length or after it, wherever it began; by the character."""
    until, shown = UntilStop(stop), []
    for n, letter in enumerate(text, 1):
        shown.append(until.push(letter, stops=n >= least))
        if until.stopped:
            break
    ends = [n for n in range(max(1, least), len(text) + 1) if any(text[:n].endswith(s) for s in stop)]
    assert until.stopped == bool(ends)
    if ends:
        assert len(shown) == ends[0]
        longest = max(len(s) for s in stop if text[: ends[0]].endswith(s))
        assert "".join(shown) == text[: ends[0] - longest]
    else:
        assert "".join([*shown, until.flush()]) == text


@settings(max_examples=60, deadline=None)
@given(st.lists(letters, max_size=8), st.text("ab", min_size=1, max_size=4))
def test_nothing_is_held_back_that_cannot_be_the_beginning_of_a_stop_string(pieces, stop):
    until, seen, shown = UntilStop([stop]), "", ""
    for piece in pieces:
        shown += until.push(piece)
        seen += piece
        if until.stopped:
            break
        held = seen[len(shown) :]
        assert stop.startswith(held)


def test_without_stop_strings_everything_passes():
    assert written(["one", "", " two"], []) == (["one", "", " two", ""], False)


# ------------------------------------------------------------------ rows


def row_of(text: bytes, ends: Ends, prompt: str = "") -> tuple[Row, list[str]]:
    row, pieces = Row(0, BYTES.encode(prompt), 0, ends, BYTES), []
    for token in [*text, 256]:
        pieces.append(row.take(token, -1.0, full=False).piece)
        if row.finish_reason is not None:
            break
    return row, pieces


def ends(**changes: object) -> Ends:
    return Ends(**{"eos_ids": frozenset([256]), "stop": (), "min_new_tokens": 0, "max_new_tokens": 100, **changes})


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("\N{GRINNING FACE}".encode(), ["", "", "", "\N{GRINNING FACE}", ""]),
        ("ďa".encode(), ["", "ď", "a", ""]),
        (b"\xf0\x9f", ["", "", "\ufffd"]),
        ("\ufffd!".encode(), ["", "", "\ufffd", "!", ""]),
        ("A 世".encode() + b"\xe4b", ["A", " ", "", "", "世", "", "\ufffdb", ""]),
    ],
)
def test_a_character_is_shown_with_its_last_byte(text, pieces):
    row, shown = row_of(text, ends())
    assert shown == pieces
    assert row.generation().text == text.decode(errors="replace")


def test_a_character_begun_in_the_prompt_is_completed():
    row = Row(0, [0xC4], 0, ends(), BYTES)
    assert row.take(0x8F, 0.0, False).piece == "ď"


def test_an_end_token_is_among_the_ids_and_not_in_the_text():
    row, _ = row_of(b"ab", ends())
    assert row.generation() == Generation([], [97, 98, 256], "ab", "eos", [-1.0] * 3, 0)
    other, _ = row_of(b"ab\ncd", ends(eos_ids=frozenset([10, 256])))  # a token that has text
    assert (other.generation().text, other.generation().ids) == ("ab", [97, 98, 10])


def test_a_stop_string_is_among_the_ids_and_not_in_the_text():
    row, pieces = row_of(b"one END two", ends(stop=("END",)))
    assert pieces == ["o", "n", "e", " ", "", "", ""]
    assert row.generation().text == "one "
    assert row.generation().finish_reason == "stop"
    assert bytes(row.ids) == b"one END"


@pytest.mark.parametrize(
    ("text", "changes", "reason"), [(b"one EN", {}, "eos"), (b"one END", {"max_new_tokens": 6}, "length")]
)
def test_what_was_held_back_is_shown_when_no_stop_string_came_of_it(text, changes, reason):
    row, _ = row_of(text, ends(stop=("END",), **changes))
    assert (row.generation().text, row.finish_reason) == ("one EN", reason)


def test_a_full_model_ends_the_row_unless_something_else_did():
    taken = [Row(0, [1], 0, ends(max_new_tokens=n), BYTES).take(i, 0.0, True) for n, i in ((1, 5), (2, 5), (2, 256))]
    assert [token.finish_reason for token in taken] == ["length", "positions", "eos"]


def test_stop_strings_are_looked_for_from_the_least_length_on():
    row, _ = row_of(b"a.b.c.d", ends(stop=(".",), min_new_tokens=4))
    assert row.generation().text == "a.b"
    assert len(row.ids) == 4


def test_a_stop_string_may_begin_before_the_least_length_and_is_held_back_from_there():
    row, pieces = row_of(b"xstopyz", ends(stop=("stop",), min_new_tokens=3))
    assert (row.generation().text, row.finish_reason, pieces) == ("x", "stop", ["x", "", "", "", ""])


def test_without_a_tokenizer_a_row_has_ids_only():
    row = Row(3, [1], 9, ends(max_new_tokens=1), None)
    assert row.take(5, -0.5, False) == (3, 5, "", -0.5, "length", ())
    assert row.generation() == Generation([1], [5], "", "length", [-0.5], 9)


def test_a_generation_prints_as_its_text():
    assert str(row_of(b"ab", ends())[0].generation()) == "ab"


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens must be at least 1"),
        ({"min_new_tokens": -1}, "min_new_tokens=-1"),
        ({"min_new_tokens": 5, "max_new_tokens": 4}, "max_new_tokens=4 and min_new_tokens=5"),
        ({"stop": ("a", "")}, "a stop string must not be empty"),
    ],
)
def test_ends_that_cannot_be_right_are_refused(bad, says):
    with pytest.raises(BadValue) as error:
        ends(**bad)
    assert says in str(error.value)
