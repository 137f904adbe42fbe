"""EncoderDecoder: a source is read both ways, a target is written looking at it (Vaswani et al. 2017, section 3.1)."""

from collections.abc import Iterator

from gnomon.attention import Cache, Memory
from gnomon.embed import InputEmbedding, InputLayer
from gnomon.errors import BadValue
from gnomon.layout import Layout
from gnomon.models.config import ModelConfig
from gnomon.models.encoder_only import warn_without_order
from gnomon.models.heads import head_for
from gnomon.models.inputs import resolve_layout
from gnomon.models.model import input_embedding, input_layer
from gnomon.models.stack import Stack
from gnomon.models.writer import Writer
from gnomon.positions import PositionEncoding
from gnomon.shapes import Float, Int
from gnomon.trace import Trace


class EncoderDecoder(Writer):
    """Two stacks. One table serves source, target and output unless `source_vocab_size` gives the source its own;
    `source_positions` gives it positions, and a norm, of its own beside the shared table (BART).

    n_layers is the encoder's depth, and the decoder's unless n_decoder_layers says otherwise. The encoding acts in both
    stacks, causally in the decoder; cross-attention has none.
    """

    architecture = "encoder-decoder"

    def build(self, config: ModelConfig) -> None:
        """The parts, in the order in which their weights are drawn."""
        if not config.causal:
            raise BadValue("a decoder writes one token after another and sees back only: leave causal=False out")
        warn_without_order(config)
        self.input = input_layer(config)
        own = config.source_vocab_size
        if own is not None:
            self.source_input: InputEmbedding | None = input_layer(config, own)
        else:
            self.source_input = input_embedding(config) if config.source_positions else None
        self.encoder = Stack(config, config.per_layer(config.n_layers), causal=False)
        self.decoder = Stack(config, config.per_layer(config.depth), causal=True, cross=True)
        self.head = head_for(config, self.input)

    def forward(
        self,
        source: Int,
        target: Int,
        source_at: Layout | None = None,
        at: Layout | None = None,
        trace: Trace | None = None,
    ) -> Float:
        """source (B, S), target (B, T) -> logits (B, T, V): what follows each target token."""
        return self.head(self.hidden(target, at, None, trace, self.encode(source, source_at)))

    def encode(self, source: Int, at: Layout | None = None, trace: Trace | None = None) -> Memory:
        """source (B, S) at `at` -> what the decoder looks at. Encode once, decode many times."""
        at = self.with_recipe(source, resolve_layout(source, at, None))
        layer = self.input if self.source_input is None else self.source_input
        tokens = layer.tokens if isinstance(layer, InputLayer) else self.input.tokens
        return Memory(self.encoder(layer.embed(tokens, source, at, trace=trace), at, at, None, trace), at)

    def read(
        self, ids: Int, at: Layout, cache: Cache | None = None, trace: Trace | None = None, memory: Memory | None = None
    ) -> Float:
        """Target ids (B, T) at `at`, known to continue the cache -> the decoder's last hidden state (B, T, D)."""
        memory = cache.memory if memory is None and cache is not None else memory
        if memory is None:
            raise BadValue("a decoder looks at an encoded source: pass memory=model.encode(...), or set cache.memory")
        x: Float = self.input(ids, at, trace=trace)
        k_at = at if cache is None else cache.extend(at)
        x = self.decoder(x, at, k_at, cache, trace, memory)
        if cache is not None:
            cache.commit()
        return x

    def encodings(self) -> Iterator[PositionEncoding]:
        """Every encoding in the model, each once."""
        yield from self.encoder.encodings()
        yield from self.decoder.encodings()
        for layer in (self.input, self.source_input):
            if layer is not None and layer.position is not None:
                yield layer.position


__all__ = ["EncoderDecoder"]
