"""The other architectures as laws ask them: ids, where they sit and a cache go in, logits come out."""

import torch

from gnomon.attention import Cache, Memory
from gnomon.layout import Layout
from gnomon.models import EncoderDecoder, EncoderOnly
from gnomon.models.stack import Stack
from gnomon.shapes import Float, Int
from gnomon.trace import Trace

SOURCE = (3, 14, 15, 9, 2)
PADDING = 28  #: the token that stands around it, which must not be seen


class DecoderOverSource(EncoderDecoder):
    """An EncoderDecoder over one source, the same for every row and padded on both sides."""

    @property
    def stack(self) -> Stack:
        """The decoder's."""
        return self.decoder

    def forward(  # type: ignore[override]
        self, ids: Int, at: Layout | None = None, cache: Cache | None = None, trace: Trace | None = None
    ) -> Float:
        """ids (B, T) of the target -> logits (B, T, V)."""
        return self.head(self.hidden(ids, at, cache, trace))

    def hidden(
        self,
        ids: Int,
        at: Layout | None = None,
        cache: Cache | None = None,
        trace: Trace | None = None,
        memory: Memory | None = None,
    ) -> Float:
        """The decoder's last hidden state. A cache holds the source; without one it is read every time."""
        if memory is None and cache is not None and cache.memory is None:
            cache.memory = self.memory_of(ids, at)
        elif memory is None and cache is None:
            memory = self.memory_of(ids, at)
        return super().hidden(ids, at, cache, trace, memory)

    def memory_of(self, ids: Int, at: Layout | None) -> Memory:
        """The encoded source of every row; of every document of a packed row, for each sees its own."""
        if at is not None and at.doc is not None and at.kind == "packed":
            n = int(at.doc.amax()) + 1
            source, where = torch.tensor([SOURCE * n]), Layout.packed([[len(SOURCE)] * n])
        else:
            source = torch.tensor([[PADDING, PADDING, *SOURCE, PADDING]])
            where = Layout.padded(source != PADDING)
        memory = self.encode(source.to(ids.device), where.to(ids.device))
        return memory.rows(torch.zeros(len(ids), dtype=torch.long, device=ids.device))


class EncoderLogits(EncoderOnly):
    """An EncoderOnly whose vectors can be asked for, and its head asked about vectors, as of a DecoderOnly."""

    def hidden(self, ids: Int, at: Layout | None = None) -> Float:
        """ids (B, T) -> vectors (B, T, D)."""
        return self.encode(ids, at).states


__all__ = ["PADDING", "SOURCE", "DecoderOverSource", "EncoderLogits"]
