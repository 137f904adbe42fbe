"""Models of lucidrains' x-transformers: TransformerWrapper, AutoregressiveWrapper around one, XTransformer.

What laws ask is said in the library's own words: padding on the left is `seq_start_pos` (as `generate(prompt_lens=...)`
says it), other padding is `mask`, documents are `attn_mask`, positions are `pos`, a step hands over all ids so far with
`cache` and `cache_age` new ones.
"""

from copy import copy
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch import nn

from gnomon.audit.adapters.documents import count_within_documents
from gnomon.audit.target import SOURCE_STREAM, Ability, NotApplicable, Target
from gnomon.shapes import Bool, Float, Int


@dataclass(frozen=True)
class Read:
    """What was read so far: ids (B, S), the library's cache of them, their positions if they were given."""

    ids: Int
    cache: Any
    positions: Int | None


class XTransformers(Target):
    """A TransformerWrapper, bare or inside an AutoregressiveWrapper or XTransformer.

    An XTransformer reads a source of 5 drawn tokens until `told` another one.
    """

    def __init__(self, model: nn.Module, seed: int = 0) -> None:
        self.model = model.eval()
        self.source: Int | None = None
        self.source_mask: Bool | None = None
        net, layers = self.net, self.net.attn_layers
        kind = "encoder-decoder" if self.encoder is not None else "decoder-only" if layers.causal else "encoder-only"
        windows = {m.max_attend_past for m in layers.modules() if type(m).__name__ == "Attention"}
        self.windowed = windows != {None}
        window = windows.pop() if len(windows) == 1 else None
        learned = type(net.pos_emb).__name__ == "AbsolutePositionalEmbedding"
        weight = next(model.parameters())
        super().__init__(
            type(model).__name__,
            net.num_tokens if self.encoder is None else min(net.num_tokens, self.encoder.num_tokens),
            kind,  # type: ignore[arg-type]
            layers=layers.depth,
            dtype=weight.dtype,
            device=weight.device,
            window=None if window is None else window + 1,
            limit=net.max_seq_len if learned else None,
            table_ends=learned,
            shift=self._promised_shift(),
            seed=seed,
        )
        self.can = frozenset(self._abilities())

    # ------------------------------------------------------------------ what it computes

    def logits(
        self, ids: Int, mask: Bool | None = None, positions: Int | None = None, docs: Int | None = None
    ) -> Float:
        """See Target."""
        said = self._source_arguments(len(ids))
        if docs is not None:
            said["attn_mask"] = docs[:, None, :, None] == docs[:, None, None, :]
            positions = count_within_documents(docs) if self._takes_positions() else None
        if positions is not None:
            said["pos"] = self._positions(positions)
        return _tensor(self.net(ids, **said, **self._padding(mask, positions)))

    def step(self, state: Any, ids: Int, mask: Bool | None = None, positions: Int | None = None) -> tuple[Float, Read]:
        """See Target."""
        self.need("cache")
        before = state if state is not None else Read(ids[:, :0], None, None if positions is None else positions[:, :0])
        so_far = torch.cat([before.ids, ids], 1)
        said = self._source_arguments(len(ids))
        if positions is not None:
            assert before.positions is not None
            positions = torch.cat([before.positions, positions], 1)
            said["pos"] = self._positions(positions)
        if before.cache is not None:
            said |= {"cache": before.cache, "cache_age": ids.shape[1]}
        logits, cache = self.net(so_far, return_intermediates=True, **said, **self._padding(mask, positions))
        return _tensor(logits), Read(so_far, cache, positions)

    def reorder(self, state: Read, index: Int) -> Read:
        """See Target. As the library's own beam search does it."""
        for layer in state.cache.attn_intermediates:
            layer.cached_kv = [x[index] for x in layer.cached_kv]
        positions = None if state.positions is None else state.positions[index]
        return Read(state.ids[index], state.cache, positions)

    def beam(self, ids: Int, width: int, new: int, cached: bool) -> list[list[int]]:
        """See Target."""
        self.need("beam")
        found = self._wrapper().beam_search(ids, new, beams=width, cache_kv=cached)
        return [list(map(int, row)) for row in found]

    def with_source(self, source: Int, mask: Bool | None = None) -> "XTransformers":
        """See Target."""
        self.need("source")
        other = copy(self)
        other.source, other.source_mask = source, mask
        return other

    def loss(self, ids: Int) -> Float:
        """See Target."""
        self.need("loss")
        loss: Float = self._wrapper()(ids, **self._source_arguments(len(ids)))
        return loss

    # ------------------------------------------------------------------ what it consists of

    @property
    def net(self) -> Any:
        """The TransformerWrapper that scores tokens."""
        inner: Any = self.model
        if type(inner).__name__ == "XTransformer":
            inner = inner.decoder
        return inner.net if type(inner).__name__ == "AutoregressiveWrapper" else inner

    @property
    def encoder(self) -> Any:
        """The TransformerWrapper that reads the source; None where there is none."""
        model: Any = self.model
        return model.encoder if type(model).__name__ == "XTransformer" else None

    @property
    def module(self) -> nn.Module:
        """See Target."""
        return self.model

    def with_module(self, module: nn.Module) -> "XTransformers":
        """See Target."""
        other = copy(self)
        other.model = module.eval()
        return other

    def embedding(self) -> nn.Module:
        """See Target."""
        found: nn.Module = self.net.token_emb.emb
        return found

    def blocks(self) -> nn.ModuleList:
        """See Target. Attention and feed-forward networks, each after its norm, without what is put around them."""
        return nn.ModuleList(_inside(block) for _, block, _ in self.net.attn_layers.layers)

    def embedding_and_head(self) -> tuple[nn.Parameter, nn.Parameter]:
        """See Target."""
        embeds: nn.Parameter = self.net.token_emb.emb.weight
        return embeds, embeds if self.promises_tie else self.net.to_logits.weight

    @property
    def promises_tie(self) -> bool | None:
        """See Target. A tied head is a function of the embedding, not a module."""
        return not isinstance(self.net.to_logits, nn.Module)

    # ------------------------------------------------------------------ how it is asked

    def _abilities(self) -> set[Ability]:
        net = self.net
        found: set[Ability] = {"mask", "module"}
        if self._takes_positions():
            found |= {"positions", "placed mask"}
        if not net.num_memory_tokens and not any(getattr(m, "num_mem_kv", 0) for m in net.modules()):
            found.add("packed")
        if net.can_cache_kv and self.causal:
            found |= {"cache", "cached mask", "reorder"}
            if self.encoder is None:
                found.add("beam")
            if self._takes_positions():
                found.add("cached positions")
        if type(self.model).__name__ == "AutoregressiveWrapper":
            found.add("loss")
        if self.encoder is not None:
            found |= {"source", "loss"}
        return found

    def _takes_positions(self) -> bool:
        """Whether `pos` is read and means something: biases other than ALiBi's refuse it in so many words."""
        layers = self.net.attn_layers
        bias = type(layers.rel_pos).__name__
        rotated = layers.rotary_pos_emb is not None or layers.polar_pos_emb is not None
        return bias in ("NoneType", "AlibiPositionalBias") and (
            self._absolute() or rotated or bias == "AlibiPositionalBias"
        )

    def _absolute(self) -> bool:
        return isinstance(self.net.pos_emb, nn.Module)

    def _promised_shift(self) -> Any:
        """An absolute table sees a shift; all else counts distances, but those to memories."""
        if self._absolute():
            return "changed"
        beside = self.net.num_memory_tokens or any(getattr(m, "num_mem_kv", 0) for m in self.net.modules())
        return "unknown" if beside else "kept"

    def _positions(self, positions: Int) -> Int:
        """As `pos` wants them: of a sinusoid one row for all."""
        if type(self.net.pos_emb).__name__ != "ScaledSinusoidalEmbedding":
            return positions
        if bool((positions != positions[:1]).any()):
            raise NotApplicable(f"{self.name} with a sinusoid takes the same positions in every row")
        return positions[0]

    def _source_arguments(self, rows: int) -> dict[str, Any]:
        """What the decoder of an XTransformer is told of the source."""
        if self.encoder is None:
            return {}
        source, mask = self.source, self.source_mask
        if source is None:
            source = self.ids(1, 5, SOURCE_STREAM).expand(rows, -1)
        return {"context": self.encoder(source, mask=mask, return_embeddings=True), "context_mask": mask}

    def _padding(self, mask: Bool | None, positions: Int | None) -> dict[str, Any]:
        """Padding in the library's words. What rows begin with is `seq_start_pos`, which counts positions too; beside
        positions that are given it is `mask`, which hides keys and says nothing of positions. An encoder has both."""
        if mask is None:
            return {}
        begins, ends = (bool((a >= b).all()) for a, b in ((mask[:, 1:], mask[:, :-1]), (mask[:, :-1], mask[:, 1:])))
        if not begins and not ends and (positions is None or self.windowed):
            counts = "its windows count slots" if self.windowed else "`mask` says nothing of positions"
            raise NotApplicable(f"{counts}: padding inside a text moves what follows it in {self.name}")
        if positions is not None or not begins:
            return {"mask": mask}
        said: dict[str, Any] = {"seq_start_pos": (~mask).sum(1)}
        return said if self.causal else {**said, "mask": mask}

    def _wrapper(self) -> Any:
        """The AutoregressiveWrapper, put around a bare net where there is none."""
        model: Any = self.model
        if self.encoder is not None:
            return model.decoder
        if type(model).__name__ == "AutoregressiveWrapper":
            return model
        return import_module("x_transformers").AutoregressiveWrapper(model)


def _inside(block: Any) -> nn.Module:
    """The attention or feed-forward network in a scale or a shift of tokens."""
    while type(block).__name__ in ("AdaptiveLayerScale", "LayerScale", "Scale", "ShiftTokens"):
        block = block.fn
    inside: nn.Module = block
    return inside


def _tensor(logits: Any) -> Float:
    """Of several heads the first."""
    first: Float = logits[0] if isinstance(logits, tuple) else logits
    return first


__all__ = ["Read", "XTransformers"]
