"""What generation asks of a model. `gnomon.DecoderOnly` has all of it; so may any model of yours."""

from collections.abc import Callable, Iterator
from typing import Literal, Protocol, runtime_checkable

from torch import nn

from gnomon.attention import Cache, Memory
from gnomon.data import Tokenizer
from gnomon.layout import Layout
from gnomon.shapes import Float, Int


class Sizes(Protocol):
    """What a model's config says about its tokens."""

    @property
    def vocab_size(self) -> int:
        """V: ids run from 0 to V - 1."""

    @property
    def padding_id(self) -> int | None:
        """The id that stands for no token, if there is one; it is never generated."""

    @property
    def causal(self) -> bool:
        """Whether a token sees only what came before it; nothing else can be continued."""


@runtime_checkable
class LanguageModel(Protocol):
    """A causal model that is read in two parts, so that the head can be asked for the last token only."""

    @property
    def config(self) -> Sizes:
        """Its sizes."""

    @property
    def tokenizer(self) -> Tokenizer | None:
        """Needed for prompts and stop strings given as text, and to write text."""

    @property
    def head(self) -> Callable[[Float], Float]:
        """Hidden states (B, T, D) -> logits (B, T, V)."""

    def hidden(self, ids: Int, at: Layout | None = None, cache: Cache | None = None) -> Float:
        """Ids (B, T) at `at`, after what the cache holds -> hidden states (B, T, D); extends the cache."""

    def cache(
        self, kind: Literal["growing", "preallocated", "rolling"] = "growing", capacity: int = 0, rollback: int = 0
    ) -> Cache:
        """An empty cache; a rolling one can go back `rollback` tokens."""

    def check(self, at: Layout) -> None:
        """Raise BadValue if there is no such position (past the end of a learned table)."""

    def modules(self) -> Iterator[nn.Module]:
        """Itself and all its parts, as of any nn.Module."""

    def parameters(self) -> Iterator[nn.Parameter]:
        """Its weights, as of any nn.Module."""


@runtime_checkable
class ReadsSource(Protocol):
    """What an encoder-decoder has besides: it reads a source before it writes."""

    def encode(self, source: Int, at: Layout | None = None) -> Memory:
        """Source ids (B, S) at `at` -> what the decoder looks at, to be set as `cache.memory`."""


@runtime_checkable
class SourceSizes(Protocol):
    """What the config of an encoder-decoder says besides."""

    @property
    def source_vocab_size(self) -> int | None:
        """The number of a source's ids where it has a table of its own; None where source and target share one."""


@runtime_checkable
class Marked(Protocol):
    """What a model knows that was published with marks of its own."""

    @property
    def ends(self) -> tuple[int, ...]:
        """Ids that end a text, besides the tokenizer's end-of-text."""

    @property
    def start(self) -> int | None:
        """The id before the first that a decoder writes; None where that is end-of-text."""


@runtime_checkable
class WritesFirst(Protocol):
    """What a model knows whose texts all begin with one token, such as the code of the language to translate into."""

    @property
    def first(self) -> int | None:
        """The id that a decoder writes first; None where it may begin with any."""


__all__ = ["LanguageModel", "Marked", "ReadsSource", "Sizes", "SourceSizes", "WritesFirst"]
