"""Cross-attention: a decoder's queries over an encoder's output (Vaswani et al. 2017, section 3.2.3).

Position has no part in it: source and target count their tokens apart. The source's padding stays hidden whoever calls,
because the memory carries its Layout.
"""

from gnomon.attention.attend import NOTHING
from gnomon.attention.cache import Cache
from gnomon.attention.memory import Memory
from gnomon.attention.multihead import MultiHeadAttention
from gnomon.layout import Layout
from gnomon.shapes import Float
from gnomon.trace import Trace


class CrossAttention(MultiHeadAttention):
    """Queries from the decoder; keys and values from memory, made once per source and then read from the cache."""

    def forward(  # type: ignore[override]
        self,
        x: Float,
        at: Layout,
        memory: Memory,
        layer: int = 0,
        cache: Cache | None = None,
        trace: Trace | None = None,
    ) -> Float:
        """x (B, T, D) at `at` attends to all of memory -> (B, T, D)."""
        q = self.queries(x)
        if cache is None:
            k, v = self.keys_values(memory.states)
        else:
            k, v = cache.recall(layer, lambda: self.keys_values(memory.states))
        if trace is not None:
            trace.add_cross(self.weights(q, k, NOTHING, at, memory.at))
            if trace.cross_scores is not None:
                trace.add_cross_scores(self.scores(q, k, NOTHING, at, memory.at))
        return self.attend(q, k, v, NOTHING, at, memory.at)


__all__ = ["CrossAttention"]
