"""DecoderOnly: ids -> input layer -> blocks -> head. The architecture of GPT and Llama; an encoder when not causal."""

from collections.abc import Iterator

from gnomon.attention import Cache, Memory
from gnomon.errors import BadValue
from gnomon.layout import Layout
from gnomon.models.config import ModelConfig
from gnomon.models.heads import head_for
from gnomon.models.model import input_layer
from gnomon.models.stack import Stack
from gnomon.models.writer import Writer
from gnomon.positions import PositionEncoding
from gnomon.shapes import Float, Int
from gnomon.trace import Trace


class DecoderOnly(Writer):
    """A stack of blocks over one input layer, with logits over the vocabulary. causal=False makes it an encoder.

    >>> import torch
    >>> model = DecoderOnly(vocab_size=512, d_model=128, n_layers=2, n_heads=4, position="alibi")
    >>> model(torch.tensor([[76, 299, 412]])).shape
    torch.Size([1, 3, 512])
    """

    architecture = "decoder-only"

    def build(self, config: ModelConfig) -> None:
        """The parts, in the order in which their weights are drawn."""
        self.input = input_layer(config)
        self.stack = Stack(config, config.per_layer(config.n_layers), causal=config.causal)
        self.head = head_for(config, self.input)

    def forward(
        self, ids: Int, at: Layout | None = None, cache: Cache | None = None, trace: Trace | None = None
    ) -> Float:
        """ids (B, T) -> logits (B, T, V).

        at     where the tokens sit; default: 0..T-1, or right after what the cache holds
        cache  keys and values of earlier calls, extended by this one
        trace  written to: vectors, residual stream and attention weights
        """
        return self.head(self.hidden(ids, at, cache, trace))

    def read(
        self, ids: Int, at: Layout, cache: Cache | None = None, trace: Trace | None = None, memory: Memory | None = None
    ) -> Float:
        """ids (B, T) at `at`, known to continue the cache -> the last hidden state (B, T, D)."""
        if memory is not None:
            raise BadValue(
                "a decoder-only model has no source input: put the source before the text, or use EncoderDecoder"
            )
        x = self.input(ids, at, trace=trace)
        k_at = at if cache is None else cache.extend(at)
        x = self.stack(x, at, k_at, cache, trace)
        if cache is not None:
            cache.commit()
        return x

    def encodings(self) -> Iterator[PositionEncoding]:
        """Every encoding in the model, each once."""
        yield from self.stack.encodings()
        if self.input.position is not None:
            yield self.input.position

    def position_of(self, layer: int) -> PositionEncoding:
        """The encoding that acts in this layer's attention ("none" where position came in at the input)."""
        return self.stack.position_of(layer)


__all__ = ["DecoderOnly"]
