"""A position module by itself: a rotation, a bias or a table of vectors, without a model around it.

Rotation("rope", lambda x, positions: rope(x, positions), promised=plain_frequencies(10000.0, 64))
Bias("alibi", lambda queries, keys: bias(queries, keys), falls=True)
Table("sinusoidal", lambda n: table(n))

Laws about models do not apply to them, and those in `laws.bare` apply to nothing else. None of them knows how channels
are paired or where a library keeps its cache: they look at what comes out.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Literal

import torch

from gnomon.audit.restore import restore_afterwards
from gnomon.audit.target import Ability, Because, NotApplicable, Shift, Target
from gnomon.shapes import Bool, Float, Int

Turn = Callable[[Float, Int], Float]
Cached = Callable[[Float, Float], tuple[Float, Float]]
Layout = Literal["BHTC", "BTHC"]  #: whether heads come before tokens
Of = Callable[[Int, Int], Float]
Rows = Callable[[int], Float]


class Bare(Target):
    """Base of the three. It computes no logits, so that laws about models say "not applicable"."""

    bare = True

    def __init__(self, name: str, shift: Shift, limit: int | None, by_design: dict[str, Because] | None) -> None:
        can: frozenset[Ability] = frozenset()
        super().__init__(name, 4, layers=1, shift=shift, limit=limit, can=can, by_design=by_design or {})

    def logits(
        self, ids: Int, mask: Bool | None = None, positions: Int | None = None, docs: Int | None = None
    ) -> Float:
        """Raise NotApplicable: there is no model."""
        raise NotApplicable(f"{self.name} is a {self.what}, not a model")

    def undo_afterwards(self) -> AbstractContextManager[None]:
        """See Target. Each law asks a module that was never called: what its functions keep is forgotten."""
        return restore_afterwards(vars(self))


class Rotation(Bare):
    """Queries and keys turned by their positions.

    turn      (x (B, H, T, C), positions (T)) -> x turned; keys are turned by `key` where it is another function (xPos)
    layout    "BTHC" for functions of x (B, T, H, C); by default it is found out by asking `turn`
    cached    (q (B, H, T, C), k (B, H, S, C)) -> both turned, the queries as the last T of S tokens, if it does so
    width     C
    promised  the frequencies theta_i of its pairs in radians a token, in any order, if its documentation names them;
              channels beyond 2 len(promised) are promised to stay
    scaled    the factor its documentation puts on the lengths of vectors (YaRN's magnitude)
    cast      dtype -> turn of the same module cast to dtype, if it is an nn.Module
    """

    what = "bare rotation"

    def __init__(
        self,
        name: str,
        turn: Turn,
        *,
        key: Turn | None = None,
        layout: Layout | None = None,
        cached: Cached | None = None,
        width: int = 64,
        heads: int = 2,
        promised: Sequence[float] | None = None,
        scaled: float = 1.0,
        cast: Callable[[torch.dtype], Turn] | None = None,
        limit: int | None = None,
        by_design: dict[str, Because] | None = None,
    ) -> None:
        super().__init__(name, "kept", limit, by_design)
        self.width, self.heads, self.cached = width, heads, cached
        heads_last = (layout or self._layout(turn)) == "BTHC"
        self.turn = heads_second(turn) if heads_last else turn
        self.key = self.turn if key is None or key is turn else heads_second(key) if heads_last else key
        self.promised, self.scaled = promised, scaled
        self.cast = (lambda dtype: heads_second(cast(dtype))) if cast is not None and heads_last else cast
        if promised is not None:
            self.can = frozenset({"angles"})

    def _layout(self, turn: Turn) -> Layout:
        """Along which axis of x, and along no other, one vector that stands everywhere is turned by its position."""
        one, positions = torch.randn(self.width, generator=self.rng(4)), torch.arange(5)

        def moves(axis: int, shape: tuple[int, ...]) -> bool:
            try:
                with torch.no_grad(), restore_afterwards(turn):
                    turned = turn(one.expand(*shape, -1).contiguous(), positions)
            except Exception:  # of a function that wants its axes otherwise
                return False
            moved = [bool((turned.diff(dim=i).abs() > 1e-4).any()) for i in (1, 2)]
            return turned.shape[:-1] == shape and moved[axis - 1] and not moved[2 - axis]

        return "BTHC" if moves(1, (1, 5, 3)) and not moves(2, (1, 3, 5)) else "BHTC"

    def angles(self, length: int) -> tuple[Float, Float]:
        """See Target. The angle of a channel is that between a unit vector and what it becomes, so that the pairing
        does not matter: each pair shows it twice. Fast pairs come first. Angles are seen at position 1 of the text."""
        if self.promised is None:
            raise NotApplicable(self.lacks("angles"))
        units = torch.eye(self.width)[:, None, None].expand(-1, 1, length, -1)
        turned = self.turn(units, torch.arange(length))[:, 0, min(1, length - 1)].double()
        along = turned.diagonal()
        size = turned.norm(dim=-1)
        angles = torch.atan2((turned - along.diag()).norm(dim=-1), along).sort(descending=True).values[::2]
        want = torch.zeros(self.width // 2, dtype=torch.float64)
        want[: len(self.promised)] = torch.tensor(sorted(self.promised, reverse=True), dtype=torch.float64)
        moves = torch.arange(length, dtype=torch.float64)[:, None]
        sizes = size.amax(), torch.tensor(self.scaled, dtype=torch.float64)
        got, promised = (
            torch.cat([moves * a, s.expand(length, 1)], 1) for a, s in zip((angles, want), sizes, strict=True)
        )
        return got, promised


def heads_second(turn: Turn) -> Turn:
    """A function of x (B, T, H, C) as one of x (B, H, T, C)."""
    return lambda x, positions: turn(x.transpose(1, 2), positions).transpose(1, 2)


class Bias(Bare):
    """What is added to the scores of queries at some positions and keys at others.

    of        (queries (T), keys (S)) -> (H, T, S) or broadcastable to it
    falls     whether a key further behind is promised to get less (ALiBi), never more
    promised  the same function by the published formula
    causal    whether it speaks of keys behind the query alone
    cast      dtype -> `of` of the same module cast to dtype
    """

    what = "bare bias"

    def __init__(
        self,
        name: str,
        of: Of,
        *,
        falls: bool = False,
        promised: Of | None = None,
        causal: bool = True,
        cast: Callable[[torch.dtype], Of] | None = None,
        limit: int | None = None,
        by_design: dict[str, Because] | None = None,
    ) -> None:
        super().__init__(name, "kept", limit, by_design)
        self.of, self.falls, self.promised, self.behind, self.cast = of, falls, promised, causal, cast


class Table(Bare):
    """Vectors of the positions 0 .. n - 1, added to those of the tokens.

    rows      n -> (n, D)
    promised  the same function by the published formula
    cast      dtype -> `rows` of the same module cast to dtype
    limit     rows there are, if there is an end
    """

    what = "bare table"

    def __init__(
        self,
        name: str,
        rows: Rows,
        *,
        promised: Rows | None = None,
        cast: Callable[[torch.dtype], Rows] | None = None,
        limit: int | None = None,
        by_design: dict[str, Because] | None = None,
    ) -> None:
        super().__init__(name, "changed", limit, by_design)
        self.rows, self.promised, self.cast = rows, promised, cast


__all__ = ["Bare", "Bias", "Cached", "Layout", "Of", "Rotation", "Rows", "Table", "Turn"]
