"""Writer: a model that continues text, one token after another, with a cache."""

from abc import abstractmethod
from typing import ClassVar, Literal

from gnomon.attention import Cache, GrowingCache, PreallocatedCache, RollingCache
from gnomon.embed import Tied, Untied
from gnomon.errors import BadValue, unknown
from gnomon.generate import generate, stream
from gnomon.layout import Layout
from gnomon.models.model import Model
from gnomon.shapes import Float, Int
from gnomon.trace import Trace

CacheKind = Literal["growing", "preallocated", "rolling"]


class Writer(Model):
    """Base of DecoderOnly and EncoderDecoder."""

    architecture: ClassVar[str] = "decoder-only or encoder-decoder"
    head: Tied | Untied

    @abstractmethod
    def hidden(
        self, ids: Int, at: Layout | None = None, cache: Cache | None = None, trace: Trace | None = None
    ) -> Float:
        """ids (B, T) -> the last hidden state (B, T, D), ready for the head."""

    def cache(self, kind: CacheKind = "growing", capacity: int = 0, rollback: int = 0) -> Cache:
        """An empty cache for this model. preallocated needs a capacity in tokens; rolling needs a model with a window
        and can go back `rollback` tokens."""
        if kind == "growing":
            return GrowingCache()
        if kind == "preallocated":
            return PreallocatedCache(capacity)
        if kind != "rolling":
            raise unknown("cache", kind, ("growing", "preallocated", "rolling"))
        windows = [window for window in self.config.windows(self.config.depth) if window is not None]
        if len(windows) < max(self.config.depth, 1):
            raise BadValue("a rolling cache forgets tokens that this model still looks at: build it with window=...")
        return RollingCache(max(windows), rollback, self.config.kept)

    generate = generate  #: model.generate("text", ...) is gnomon.generate.generate(model, "text", ...)
    stream = stream


__all__ = ["CacheKind", "Writer"]
