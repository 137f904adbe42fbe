"""Any history of a cache - prompts padded anywhere, chunks, going back, rows moved, copied and dropped - equals reading
each row's tokens at once."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gnomon import Layout
from gnomon.attention import Cache
from gnomon.audit import SmallModel
from gnomon.audit.small import VOCAB

ROLLBACK = 6


class Reader:
    """A cache under test, beside the plain list of tokens that each row has read."""

    def __init__(self, small: SmallModel, kind: str, mask: torch.Tensor) -> None:
        self.model, self.numbers = small.model(), small.rng()
        self.cache: Cache = self.model.cache(kind, capacity=64, rollback=ROLLBACK)
        ids = self.draw(*mask.shape)
        self.rows = [ids[b, mask[b]].tolist() for b in range(len(mask))]
        at = Layout.padded(mask)
        self.compare(self.model(ids, at, self.cache), [mask[b].nonzero().flatten().tolist() for b in range(len(mask))])

    def draw(self, *shape: int) -> torch.Tensor:
        return torch.randint(VOCAB, shape, generator=self.numbers)

    def read(self, n: int) -> None:
        """n more tokens for every row."""
        ids = self.draw(len(self.rows), n)
        for row, more in zip(self.rows, ids.tolist(), strict=True):
            row += more
        self.compare(self.model(ids, cache=self.cache), [list(range(n))] * len(self.rows))

    def go_back(self, steps: list[int]) -> None:
        """Each row by its own number of steps."""
        keep = [max(0, len(row) - n) for row, n in zip(self.rows, steps, strict=False)]
        self.cache.crop(keep)
        self.rows = [row[:n] for row, n in zip(self.rows, keep, strict=True)]

    def move(self, index: list[int]) -> None:
        """Rows in another order, some twice, some gone."""
        index = [i % len(self.rows) for i in index]
        self.cache.reorder(torch.tensor(index))
        self.rows = [list(self.rows[i]) for i in index]

    def compare(self, logits: torch.Tensor, places: list[list[int]]) -> None:
        """The newest logits of each row against those of the row read at once."""
        for b, (row, where) in enumerate(zip(self.rows, places, strict=True)):
            if row and where:
                want = self.model(torch.tensor([row]))[0, -len(where) :]
                assert (logits[b, where] - want).abs().max() <= 1e-5 * max(1.0, want.abs().max())


back = st.lists(st.integers(0, ROLLBACK), min_size=3, max_size=3)
order = st.lists(st.integers(0, 2), min_size=1, max_size=3)
deed = st.one_of(
    st.tuples(st.just("read"), st.integers(1, 4)),
    st.tuples(st.just("go_back"), back),
    st.tuples(st.just("move"), order),
)
prompts = st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=3, max_size=3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["growing", "preallocated", "rolling"])
@pytest.mark.parametrize("position", ["none", "learned", "rope", "alibi", "t5"])
def test_every_history_equals_reading_at_once(position, kind):
    """Rolling caches go back at most `rollback` steps in all between two reads, so there each is followed by one."""

    @settings(max_examples=10, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(prompts, st.lists(deed, min_size=1, max_size=6), st.integers(0, 9))
    def holds(prompt: list[list[bool]], deeds: list[tuple], seed: int) -> None:
        window = 3 if kind == "rolling" else None
        with torch.no_grad():
            reader = Reader(SmallModel.of(position, window=window, seed=seed), kind, torch.tensor(prompt))
            budget = ROLLBACK
            for name, value in deeds:
                if name == "go_back" and kind == "rolling":
                    value = [min(n, budget) for n in value]
                    budget -= max(value)
                elif name == "read":
                    budget = min(ROLLBACK, budget + value)
                getattr(reader, name)(value)
            reader.read(2)

    holds()
