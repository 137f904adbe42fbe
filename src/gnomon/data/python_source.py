"""Python source, labelled by Python itself: the spans of its tokens, and its functions.

What `tokenize` says is exact and free, so what a model finds can be held against it. A formatted string is one string
here, as it was to Python before 3.12 took it apart, so that the labels are the same under every version.
"""

import ast
import io
import keyword
import textwrap
import tokenize
from collections.abc import Iterator
from itertools import accumulate

from gnomon.data.spans import Span
from gnomon.errors import BadInput

KINDS = ("keyword", "name", "operator", "number", "string", "comment")
_KIND_OF = {"NAME": "name", "OP": "operator", "NUMBER": "number", "STRING": "string", "COMMENT": "comment"}
_OPENING, _CLOSING = ("FSTRING_START", "TSTRING_START"), ("FSTRING_END", "TSTRING_END")


def python_spans(text: str) -> list[Span]:
    """The keywords, names, operators, numbers, strings and comments of a source text, in order.

    Words that are keywords in some places only, such as match, are names. Raises BadInput for what is not Python.
    """
    line_starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    spans, open_at, depth = [], 0, 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            what = tokenize.tok_name[token.type]
            start, end = (line_starts[row - 1] + column for row, column in (token.start, token.end))
            if what in _OPENING:
                open_at, depth = (start if depth == 0 else open_at), depth + 1
            elif what in _CLOSING:
                depth -= 1
                if depth == 0:
                    spans.append(Span(open_at, end, "string"))
            elif depth == 0 and what in _KIND_OF:
                kind = "keyword" if what == "NAME" and keyword.iskeyword(token.string) else _KIND_OF[what]
                spans.append(Span(start, end, kind))
    except (tokenize.TokenError, SyntaxError) as error:
        raise BadInput(f"this is not Python source: {error.args[0]}") from error
    return spans


def python_functions(text: str) -> Iterator[str]:
    """The functions and methods of a source text, from `def` to their last line, without decorators, docstring and
    common indentation. Functions inside functions come with the outer one. Raises BadInput for what is not Python."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    try:
        outermost = _functions(ast.parse(text))
    except (SyntaxError, ValueError) as error:
        raise BadInput(f"this is not Python source: {error.args[0]}") from error
    for node in outermost:
        first, last = node.lineno, node.end_lineno or node.lineno
        docstring = node.body[0]
        if ast.get_docstring(node, clean=False) is None or docstring.lineno == first:
            kept = lines[first - 1 : last]
        else:
            kept = lines[first - 1 : docstring.lineno - 1] + lines[docstring.end_lineno or docstring.lineno : last]
        yield textwrap.dedent("\n".join(kept)).strip("\n")


def _functions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
        else:
            yield from _functions(child)


__all__ = ["KINDS", "python_functions", "python_spans"]
