"""Writer: a model that continues text, one token after another, with a cache."""

from abc import abstractmethod
from typing import ClassVar

from gnomon.attention import Cache, GrowingCache, Memory, PreallocatedCache, RollingCache
from gnomon.embed import Tied, Untied
from gnomon.errors import BadValue, check_arguments, must_be, unknown
from gnomon.generate import generate, stream
from gnomon.generate.decoding_batch import CacheKind
from gnomon.layout import Layout
from gnomon.models.inputs import resolve_layout
from gnomon.models.model import Model
from gnomon.models.recompute import history, is_outdated
from gnomon.shapes import Float, Int
from gnomon.trace import Trace


class Writer(Model):
    """Base of DecoderOnly and EncoderDecoder."""

    architecture: ClassVar[str] = "decoder-only or encoder-decoder"
    head: Tied | Untied

    @abstractmethod
    def read(
        self, ids: Int, at: Layout, cache: Cache | None = None, trace: Trace | None = None, memory: Memory | None = None
    ) -> Float:
        """ids (B, T) at `at`, known to continue the cache -> the last hidden state (B, T, D)."""

    def hidden(
        self,
        ids: Int,
        at: Layout | None = None,
        cache: Cache | None = None,
        trace: Trace | None = None,
        memory: Memory | None = None,
    ) -> Float:
        """ids (B, T) -> the last hidden state (B, T, D), ready for the head.

        at      where the tokens sit; default: 0..T-1, or right after what the cache holds
        cache   keys and values of earlier calls, extended by this one
        trace   written to: vectors, residual stream and attention weights
        memory  an encoded source, of an encoder-decoder; default: the cache's
        """
        at = resolve_layout(ids, at, cache)
        must_be("trace", trace, Trace | None, "gn.Trace()")
        must_be("memory", memory, Memory | None, "model.encode(source) makes one")
        if cache is None:
            return self.read(ids, self.with_recipe(ids, at), None, trace, memory)
        whole = history(cache, ids, at, self.encodings(), self.recipe)
        if whole is None:
            return self.read(ids, at, cache, trace, memory)
        if not is_outdated(cache, whole[1], self.encodings()):
            x = self.read(ids, whole[1].tokens(slice(whole[1].shape[1] - ids.shape[1], None)), cache, trace, memory)
            cache.history = whole
            return x
        again = cache.fresh()
        x = self.read(*whole, again, trace, memory)[:, -ids.shape[1] :]
        again.history = whole
        cache.become(again)
        return x

    @check_arguments
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
            raise BadValue(
                "a rolling cache drops tokens that this model still attends to: build the model with window=..."
            )
        return RollingCache(max(windows), rollback, self.config.sink_tokens)

    generate = generate  #: model.generate("text", ...) is gnomon.generate.generate(model, "text", ...)
    stream = stream


__all__ = ["Writer"]
