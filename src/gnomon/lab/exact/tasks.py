"""The tasks with exact answers. One function is one task: it draws a question of length n and computes the answer.

    @task(symbols=26, source="...")
    def copy(rng, n, k): ...            # k symbols, 0 to k-1, are all there are; returns question and answer

A function here, or in a module of your own given to `--import`, is all that a new task needs: `gn.lab.tasks("copy")`,
`gnomon lab tasks copy` and the tests of every task find it by its name. `depth=True` gives it a fourth argument, the
share of the question (0 to 1) in front of what the answer depends on: it is then also measured over depths.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gnomon.errors import BadValue, unknown

Rng = np.random.Generator
Symbols = Sequence[int] | np.ndarray[Any, np.dtype[np.int64]]
Draw = Callable[..., tuple[Symbols, Symbols]]


@dataclass(frozen=True)
class ExactTask:
    """A task: what it draws, and how many symbols it needs for questions up to some length."""

    name: str
    draw: Draw
    symbols: int | Callable[[int], int]
    depth: bool
    least: int
    source: str

    @property
    def about(self) -> str:
        """One sentence."""
        return (inspect.getdoc(self.draw) or "").partition("\n")[0]

    def n_symbols(self, longest: int) -> int:
        """How many symbols its questions and answers are made of, for lengths up to `longest`."""
        return self.symbols if isinstance(self.symbols, int) else self.symbols(longest)

    def example(self, rng: Rng, n: int, k: int, depth: float | None = None) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """A question of length n over k symbols, and its answer. depth: drawn evenly where it is not given."""
        given = (rng.random() if depth is None else depth,) if self.depth else ()
        question, answer = self.draw(rng, n, k, *given)
        return tuple(map(int, question)), tuple(map(int, answer))


_TASKS: dict[str, ExactTask] = {}


def task(
    symbols: int | Callable[[int], int], source: str, depth: bool = False, least: int = 1
) -> Callable[[Draw], Draw]:
    """Make a function a task, named like it with hyphens.

    symbols  how many it is made of, or a function of the longest length in use; least: the shortest question
    source   where its results are known from
    """

    def known(draw: Draw) -> Draw:
        name = draw.__name__.replace("_", "-")
        other = _TASKS.get(name)
        if other is not None and other.draw.__module__ != draw.__module__:
            raise BadValue(f"the task {name!r} already belongs to {other.draw.__module__}: call yours something else")
        _TASKS[name] = ExactTask(name, draw, symbols, depth, least, source)
        return draw

    return known


def exact_tasks() -> dict[str, ExactTask]:
    """Every task by name."""
    return dict(_TASKS)


def exact_task(name: str) -> ExactTask:
    """The task of that name; BadValue names the nearest one."""
    if name not in _TASKS:
        raise unknown("task", name, _TASKS)
    return _TASKS[name]


# ------------------------------------------------------------------ copying and ordering

KAZEMNEJAD = "Kazemnejad et al. 2023, arXiv:2305.19466"
HUANG = "Huang et al. 2025, arXiv:2410.02140"
LETTERS = 10


@task(symbols=lambda longest: longest, source=HUANG)
def copy_unique(rng: Rng, n: int, k: int) -> tuple[Symbols, Symbols]:
    """Copy symbols that are all different."""
    x = rng.permutation(k)[:n]
    return x, x


@task(symbols=LETTERS, source=f"{HUANG}; {KAZEMNEJAD}")
def copy_repeating(rng: Rng, n: int, k: int) -> tuple[Symbols, Symbols]:
    """Copy symbols that come again and again."""
    x = rng.integers(k, size=n)
    return x, x


@task(symbols=LETTERS, source=f"Ruoss et al. 2023, arXiv:2305.16843; {KAZEMNEJAD}")
def reverse(rng: Rng, n: int, k: int) -> tuple[Symbols, Symbols]:
    """Write symbols backwards."""
    x = rng.integers(k, size=n)
    return x, x[::-1]


@task(symbols=lambda longest: longest, source=HUANG)
def sort(rng: Rng, n: int, k: int) -> tuple[Symbols, Symbols]:
    """Sort symbols that are all different."""
    x = rng.permutation(k)[:n]
    return x, np.sort(x)


# ------------------------------------------------------------------ counting


@task(symbols=2, source=HUANG)
def majority(rng: Rng, n: int, k: int) -> tuple[Symbols, Symbols]:
    """Say which of two symbols is there more often."""
    x = rng.integers(2, size=n)
    while 2 * x.sum() == n:
        x = rng.integers(2, size=n)
    return x, [int(2 * x.sum() > n)]


@task(symbols=2, source=f"{HUANG}; {KAZEMNEJAD}")
def parity(rng: Rng, n: int, k: int) -> tuple[Symbols, Symbols]:
    """Say whether the number of ones is odd."""
    x = rng.integers(2, size=n)
    return x, [int(x.sum() % 2)]


# ------------------------------------------------------------------ arithmetic

PLUS = 10  # the symbol after the ten digits


@task(symbols=PLUS + 1, source=KAZEMNEJAD)
def addition(rng: Rng, n: int, k: int) -> tuple[Symbols, Symbols]:
    """Add two numbers of n digits; the sum has n + 1 digits, the highest first."""
    question, reversed_sum = addition_reversed(rng, n, k)
    return question, reversed_sum[::-1]


@task(symbols=PLUS + 1, source="Cho et al. 2024, arXiv:2405.20671; Zhou et al. 2024, arXiv:2402.09371")
def addition_reversed(rng: Rng, n: int, k: int) -> tuple[Symbols, Symbols]:
    """Add two numbers of n digits; the sum has n + 1 digits, the lowest first."""
    a, b = rng.integers(10, size=(2, n))
    total, carry = [], 0
    for left, right in zip(a[::-1], b[::-1], strict=True):
        carry, digit = divmod(int(left) + int(right) + carry, 10)
        total.append(digit)
    return [*a, PLUS, *b], [*total, carry]


# ------------------------------------------------------------------ recall

VALUES = 16


@task(symbols=lambda longest: VALUES + longest, source="Arora et al. 2024, arXiv:2312.04927", depth=True)
def recall(rng: Rng, n: int, k: int, depth: float) -> tuple[Symbols, Symbols]:
    """Read n keys, each with its value, then a key again: answer its value."""
    keys, values = VALUES + rng.permutation(k - VALUES)[:n], rng.integers(VALUES, size=n)
    asked = round(depth * (n - 1))
    return [*np.stack([keys, values], 1).flatten(), keys[asked]], [values[asked]]


DIGITS = 3  # of a passkey
MARK = 10  # what stands before it; the filler's symbols come after


@task(symbols=MARK + 1 + 16, source="Mohtashami and Jaggi 2023, arXiv:2305.16300", depth=True)
def passkey(rng: Rng, n: int, k: int, depth: float) -> tuple[Symbols, Symbols]:
    """Find three digits behind a mark, hidden in n symbols of random filler."""
    filler, digits = rng.integers(MARK + 1, k, size=n), rng.integers(10, size=DIGITS)
    hidden = round(depth * n)
    return [*filler[:hidden], MARK, *digits, *filler[hidden:], MARK], digits


# ------------------------------------------------------------------ brackets

DEEPEST = 8


@task(symbols=4, source="Newman et al. 2020, arXiv:2010.07174")
def dyck(rng: Rng, n: int, k: int) -> tuple[Symbols, Symbols]:
    """Close all that is open of n brackets of two kinds (Dyck-2, at most 8 deep)."""
    while True:
        written: list[int] = []
        opened: list[int] = []
        for _ in range(n):
            if not opened or (len(opened) < DEEPEST and rng.random() < 0.5):
                opened.append(int(rng.integers(2)))
                written.append(opened[-1])
            else:
                written.append(opened.pop() + 2)
        if opened:
            return written, [kind + 2 for kind in reversed(opened)]


__all__ = ["ExactTask", "exact_task", "exact_tasks", "task"]
