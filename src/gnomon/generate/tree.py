"""Tree: everything that a beam looked into, and how it is printed."""

from dataclasses import dataclass, replace
from math import exp

from gnomon.data import Tokenizer
from gnomon.glossary import numeral, translate


@dataclass(frozen=True)
class Node:
    """One token that was written by a hypothesis, after the token of its parent."""

    parent: int  #: its number in the tree; -1 at the beginning
    token: int
    logprob: float
    score: float  #: of the hypothesis that ends here, length penalty included
    end: str | None = None  #: why the hypothesis ends here; None where it went on or was given up
    place: int | None = None  #: among the results: 1 is the best


@dataclass(frozen=True)
class Tree:
    """The hypotheses of a search as the tokens they share; nodes are numbered as they were written."""

    nodes: tuple[Node, ...] = ()

    def children(self) -> dict[int, list[int]]:
        """Of each node the nodes after it, the most probable first; -1 stands for the beginning."""
        after: dict[int, list[int]] = {-1: []}
        for n, node in enumerate(self.nodes):
            after.setdefault(n, [])
            after[node.parent].append(n)
        for nodes in after.values():
            nodes.sort(key=lambda n: -self.nodes[n].logprob)
        return after


class Record:
    """A tree that grows."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._known: dict[tuple[int, int], int] = {}  # (parent, token) -> node

    def add(self, node: Node) -> int:
        """The number of this node; the same token after the same parent, of another group, is the same node."""
        n = self._known.setdefault((node.parent, node.token), len(self.nodes))
        if n == len(self.nodes):
            self.nodes.append(node)
        return n

    def tree(self, results: list[int]) -> Tree:
        """What has grown, with the last nodes of the results marked, the best first."""
        places = {n: place for place, n in enumerate(results, 1)}
        return Tree(tuple(replace(node, place=places.get(n)) for n, node in enumerate(self.nodes)))


@dataclass(frozen=True)
class Strokes:
    """What a tree is drawn with."""

    fork: str
    last: str
    down: str
    dead: str


BOXES = Strokes("├─ ", "└─ ", "│  ", "×")
ASCII = Strokes("|- ", "`- ", "|  ", "x")


def draw(tree: Tree, tokenizer: Tokenizer | None = None, ascii: bool = False, lang: str = "en") -> str:
    """The tree as lines of text, one for each run of tokens that was never in doubt.

    A line holds the tokens, the probability of the first of them after what stands above, and how the line ends: `#1`
    with score and reason for the best result, `#2` for the next one, a reason alone for a text that ended and was not
    returned, × (ascii: x) where the beam gave it up. Numbers and reasons are written as `lang` writes them.
    """
    strokes, after = (ASCII if ascii else BOXES), tree.children()
    lines: list[str] = []

    def branch(n: int, before: str, last: bool) -> None:
        run = [n]
        while len(after[run[-1]]) == 1:
            run.append(after[run[-1]][0])
        text = _text([tree.nodes[i].token for i in run], tokenizer)
        ending = _ending(tree.nodes[run[-1]], after[run[-1]], strokes, lang)
        stroke = strokes.last if last else strokes.fork
        lines.append(f"{before}{stroke}{text}  {_percent(tree.nodes[n].logprob, lang)}{ending}")
        below(run[-1], before + ("   " if last else strokes.down))

    def below(n: int, before: str) -> None:
        for child in after[n]:
            branch(child, before, child == after[n][-1])

    below(-1, "")
    text = "\n".join(lines)
    return text.replace("␣", "_").encode("ascii", "backslashreplace").decode() if ascii else text


def _text(ids: list[int], tokenizer: Tokenizer | None) -> str:
    return " ".join(map(str, ids)) if tokenizer is None else "".join(tokenizer.tokens(ids))


def _percent(logprob: float, lang: str) -> str:
    chance = exp(logprob)
    return "<" * (chance < 0.0005) + numeral(max(chance, 0.001), ".1%", lang)


def _ending(node: Node, after: list[int], strokes: Strokes, lang: str) -> str:
    if after:
        return ""
    if node.end is None:
        return f"  {strokes.dead}"
    place = "" if node.place is None else f"#{node.place} "
    return f"  {place}{numeral(node.score, '+.3f', lang)} ({translate(node.end, lang)})"


__all__ = ["Node", "Record", "Tree", "draw"]
