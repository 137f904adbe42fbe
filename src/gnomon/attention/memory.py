"""Memory: what an encoder hands to a decoder, and where its tokens sit."""

from dataclasses import dataclass

from gnomon.layout import Layout
from gnomon.shapes import Float, Int


@dataclass(frozen=True)
class Memory:
    """An encoder's output: states (B, S, D) at `at`."""

    states: Float
    at: Layout

    def rows(self, index: Int) -> "Memory":
        """The rows `index` (B',), repeated or dropped as it says."""
        return Memory(self.states.index_select(0, index), self.at.rows(index))


__all__ = ["Memory"]
