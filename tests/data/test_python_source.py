"""Python's own tokenizer and parser as a source of labels."""

import pytest

from gnomon.data.python_source import python_functions, python_spans
from gnomon.errors import BadInput


def labelled(text):
    return [(text[s.start : s.end], s.kind) for s in python_spans(text)]


def test_every_token_of_a_line_is_a_span():
    assert labelled("if x1 >= 0x1F: return 'no'  # yes\n") == [
        ("if", "keyword"),
        ("x1", "name"),
        (">=", "operator"),
        ("0x1F", "number"),
        (":", "operator"),
        ("return", "keyword"),
        ("'no'", "string"),
        ("# yes", "comment"),
    ]


def test_soft_keywords_are_names():
    assert labelled("match = type\n") == [("match", "name"), ("=", "operator"), ("type", "name")]


@pytest.mark.parametrize("string", ['f"{a!r:>{width}} {b}"', "f'{x}'", "rf'''{x}\n{y}'''", 'f"{f"{x}"}"'])
def test_a_formatted_string_is_one_string_whatever_is_inside(string):
    """Nested quotes of one kind are one string since Python 3.12; before they were two with a name between."""
    found = labelled(f"y = {string} + 1\n")
    if string.count('"') != 4:
        assert found == [("y", "name"), ("=", "operator"), (string, "string"), ("+", "operator"), ("1", "number")]
    assert found[0] == ("y", "name")
    assert found[-1] == ("1", "number")


def test_offsets_count_characters_across_lines_and_scripts():
    text = 's = """día\n  ñ"""\nπ = 3\n'
    assert labelled(text) == [
        ("s", "name"),
        ("=", "operator"),
        ('"""día\n  ñ"""', "string"),
        ("π", "name"),
        ("=", "operator"),
        ("3", "number"),
    ]


@pytest.mark.parametrize("text", ['x = """', "f(", "if x:\n  a\n b\n"])
def test_what_is_not_python_is_named(text):
    with pytest.raises(BadInput, match="not Python source"):
        python_spans(text)


SOURCE = '''
import os

@cached
def one(a):
    """Say one."""
    return a

class C:
    """A class."""

    async def two(self):
        """Say two,
        on two lines.
        """
        def inner():
            pass
        return inner

def three(): "only words"
'''


def test_functions_come_without_decorator_docstring_and_indentation():
    assert list(python_functions(SOURCE)) == [
        "def one(a):\n    return a",
        "async def two(self):\n    def inner():\n        pass\n    return inner",
        'def three(): "only words"',
    ]


def test_line_ends_do_not_matter_to_functions():
    assert list(python_functions(SOURCE.replace("\n", "\r\n"))) == list(python_functions(SOURCE))


def test_a_function_that_does_not_parse_is_named():
    with pytest.raises(BadInput, match="not Python source"):
        list(python_functions("def f(:"))
