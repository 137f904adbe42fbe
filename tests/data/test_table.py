"""Tables of text and label, and the mistakes that are in them."""

import json

import pytest

from gnomon.data.table import Example, drop_duplicates, read_table, split_examples
from gnomon.errors import BadInput

ROWS = [Example("one, two", "a"), Example('say "hi"', "b")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.tsv", 'text\tlabel\none, two\ta\nsay "hi"\tb\n'),
        ("t.tsv", 'id\tlabel\ttext\n1\ta\tone, two\n\n2\tb\tsay "hi"\n'),
        ("t.csv", 'text,label\n"one, two",a\n"say ""hi""",b\n'),
        ("t.CSV", '\ufefflabel,text\r\na,"one, two"\r\nb,"say ""hi"""\r\n'),
        ("t.jsonl", "\n".join(json.dumps(row._asdict()) for row in ROWS) + "\n\n"),
    ],
)
def test_a_table_is_read_in_every_format(tmp_path, name, content):
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert read_table(tmp_path / name) == ROWS


def test_a_field_in_quotes_may_hold_a_line_break(tmp_path):
    (tmp_path / "t.csv").write_text('text,label\n"two\nlines",a\n')
    assert read_table(tmp_path / "t.csv") == [Example("two\nlines", "a")]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.txt", "x", "unknown kind of table '.txt'"),
        ("t.tsv", "", "line 1: there is no column 'text' or 'label'"),
        ("t.csv", "text,class\nx,y\n", "line 1: there is no column 'label' among"),
        ("t.csv", "text,label\nx,y\nz\n", "line 3: 1 fields where 2 were expected"),
        ("t.tsv", "text\tlabel\nx\ty\tz\n", "line 2: 3 fields where 2 were expected"),
        ("t.csv", "text,label\nx,\n", "line 2: label must be some text, got ''"),
        ("t.csv", 'text,label\n"two\nlines",a\n,b\n', "line 4: text must be some text"),
        ("t.csv", 'text,label\n"x"y,a\n', "line 2: "),
        (
            "t.jsonl",
            '{"text": "x", "label": "y"}\n{"text": 3, "label": "y"}\n',
            "line 2: text must be some text, got 3",
        ),
        ("t.jsonl", "[1]\n", "line 1: an object with text and label"),
        ("t.jsonl", '\n{"text": \n', "line 2: not JSON"),
        ("t.csv", "text,label\n", "holds no rows"),
        ("t.csv", b"text,label\nni\xf1o,a\n", "not UTF-8"),
        ("missing.csv", None, "cannot read"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(BadInput, match=message):
        read_table(tmp_path / name)


def test_a_text_is_kept_once_and_not_at_all_with_two_labels():
    rows = [Example("x", "a"), Example("y", "a"), Example("x", "a"), Example("y", "b"), Example("y", "a")]
    assert drop_duplicates(rows) == [Example("x", "a")]


def test_no_text_is_on_both_sides_and_every_class_is():
    rows = [Example(f"{label}{i}", label) for label, n in (("a", 40), ("b", 3), ("c", 2)) for i in range(n)]
    training, held_out = split_examples(rows, 0.2)
    assert sorted(training + held_out) == sorted(rows)
    assert {label for _, label in training} == {label for _, label in held_out} == {"a", "b", "c"}
    assert [sum(row.label == label for row in held_out) for label in "abc"] == [8, 1, 1]
    assert split_examples(rows[::-1], 0.2)[1] == held_out  # not by their order
    assert split_examples(rows, 0.2, seed=1)[1] != held_out


def test_a_class_of_one_text_cannot_be_held_out():
    with pytest.raises(BadInput, match="'b' has one text, .*: give more, or none"):
        split_examples([Example("x", "a"), Example("y", "a"), Example("z", "b")], 0.5)
