"""How encodings and recipes are written as text, in flags, files and tables: `rope(base=200, pairing="half")`."""

import ast
import re
from typing import Any

from gnomon.errors import BadValue


def call(text: str, what: str = "position encoding") -> tuple[str, list[Any], dict[str, Any]]:
    """The name, the values and the options of `NAME`, or `NAME(VALUE, OPTION=VALUE)`. BadValue for other text."""
    found = re.fullmatch(r"\s*([^()]+?)\s*(?:\((.*)\))?\s*", text, re.DOTALL)
    if found is None:
        raise BadValue(f"{text!r} is no {what}: expected a name, or a name with options: rope(base=200)")
    name, inside = found.groups()
    try:
        parsed = ast.parse(f"_({inside or ''})", mode="eval").body
        assert isinstance(parsed, ast.Call)
        values = [ast.literal_eval(value) for value in parsed.args]
        return name, values, {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in parsed.keywords}
    except (SyntaxError, ValueError, AssertionError) as error:
        raise BadValue(
            f"cannot read the options of {text!r}: expected NAME(OPTION=VALUE, ...), values as in Python"
        ) from error


def to_text(name: str, options: dict[str, Any]) -> str:
    """The text that `call` reads: the name alone where there are no options."""
    return f"{name}({', '.join(f'{k}={v!r}' for k, v in options.items())})" if options else name


def split(text: str) -> list[str]:
    """The encodings of a list as it is typed, at the commas that are not within options or brackets.

    >>> split("rope, rope(base=200, fraction=0.5),alibi, [rope, none]")
    ['rope', 'rope(base=200, fraction=0.5)', 'alibi', '[rope, none]']

    BadValue where nothing stands between two commas.
    """
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    parts = [part.strip() for part in parts]
    if not all(parts):
        raise BadValue(f"{text!r} lists a name that is empty: give names with one comma between two of them")
    return parts


__all__ = ["call", "split", "to_text"]
