"""Templates whose trees count their own work, see ``gnomon.data.sandbox``.

Jinja compiles a template to Python in which loops, comparisons, slices and `~` are plain Python, that calls nothing. So
before it does, filters that count are put there, under names that no template can write.
"""

from collections.abc import Iterable
from typing import Any, ClassVar

from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.visitor import NodeTransformer

READ, STEP, WRITE = 1, 10, 10  #: of work: a letter looked at, an evaluation or element, a letter written


class GenerationTag(Extension):
    """`{% generation %}` marks what the model wrote, for those who train on it; here its body is written as it is."""

    tags: ClassVar[set[str]] = {"generation"}  # type: ignore[misc]

    def parse(self, parser: Parser) -> nodes.Node:
        """The block, with names of its own."""
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)


class CountWork(NodeTransformer):
    """Puts counting into a template's tree, where Jinja calls nothing that could count."""

    def visit_For(self, node: nodes.For) -> nodes.For:
        """What a loop goes through, what its condition costs for each, and what its body does."""
        each = 0 if node.test is None else _weight([node.test])
        self._body(node)
        node.iter = nodes.Filter(node.iter, "-elements", [nodes.Const(each)], [], None, None, lineno=node.lineno)
        return node

    def _body(self, node: Any) -> Any:
        work = _weight(node.body)
        self.generic_visit(node)
        count = nodes.Filter(nodes.Const(work), "-spend", [], [], None, None, lineno=node.lineno)
        node.body.insert(0, nodes.ExprStmt(count, lineno=node.lineno))
        return node

    visit_Macro = visit_CallBlock = visit_Block = visit_Template = _body

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        """Both sides are read."""
        self.generic_visit(node)
        node.expr = _through("-read", node.expr)
        for operand in node.ops:
            operand.expr = _through("-read", operand.expr)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        """`~` writes what it joins."""
        self.generic_visit(node)
        node.nodes = [_through("-text", part) for part in node.nodes]
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        """A slice is a copy."""
        self.generic_visit(node)
        return _through("-made", node) if isinstance(node.arg, nodes.Slice) else node


def _through(name: str, node: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


def _weight(body: Iterable[nodes.Node]) -> int:
    """What one pass through these nodes costs, apart from what is counted as it happens."""
    stack, work = list(body), 0
    while stack:
        node = stack.pop()
        work += STEP + (WRITE * len(node.data) if isinstance(node, nodes.TemplateData) else 0)
        stack += node.iter_child_nodes()
    return work


__all__ = ["READ", "STEP", "WRITE", "CountWork", "GenerationTag"]
