"""EncoderOnly: ids -> input layer -> blocks that see both ways -> a vector per token (BERT, arXiv:1810.04805)."""

import warnings
from collections.abc import Iterator

from gnomon.attention import Memory
from gnomon.errors import BadValue
from gnomon.layout import Layout
from gnomon.models.config import ModelConfig
from gnomon.models.heads import HEADS, Head
from gnomon.models.inputs import resolve_layout
from gnomon.models.model import Model, input_layer
from gnomon.models.stack import Stack
from gnomon.positions import PositionEncoding
from gnomon.shapes import Float, Int
from gnomon.trace import Trace


class EncoderOnly(Model):
    """A bidirectional stack. Called, it gives what its head says; `encode` gives the vectors that the head reads."""

    architecture = "encoder-only"
    head: Head

    def build(self, config: ModelConfig) -> None:
        """The parts, in the order in which their weights are drawn."""
        if config.causal:
            raise BadValue("an encoder sees both ways: leave causal=True out, or take a DecoderOnly")
        warn_without_order(config)
        self.input = input_layer(config)
        self.stack = Stack(config, config.per_layer(config.n_layers), causal=False)
        self.head = HEADS[config.head](config, self.input)

    def forward(
        self, ids: Int, at: Layout | None = None, types: Int | None = None, trace: Trace | None = None
    ) -> Float:
        """ids (B, T) -> what the head says of them: logits (B, T, V), unless the config names another head."""
        return self.head(self.encode(ids, at, types, trace))

    def encode(
        self, ids: Int, at: Layout | None = None, types: Int | None = None, trace: Trace | None = None
    ) -> Memory:
        """ids (B, T) at `at`, with segments `types` (B, T) -> a vector for each, (B, T, D), and where it sits."""
        at = self.with_recipe(ids, resolve_layout(ids, at, None))
        return Memory(self.stack(self.input(ids, at, types, trace), at, at, None, trace), at)

    def encodings(self) -> Iterator[PositionEncoding]:
        """Every encoding in the model, each once."""
        yield from self.stack.encodings()
        if self.input.position is not None:
            yield self.input.position


def warn_without_order(config: ModelConfig) -> None:
    """Warn where nothing in a bidirectional stack tells order."""
    if all(spec.name == "none" for spec in config.specs):
        warnings.warn(
            "a bidirectional stack without position cannot tell one order of its tokens from another (masked-token "
            "perplexity 147 against 4 with positions: Haviv et al. 2022, arXiv:2203.16634, table 4)",
            stacklevel=3,
        )


__all__ = ["EncoderOnly", "warn_without_order"]
