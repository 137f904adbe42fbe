"""Plan: what a model costs before it is built. Parameters by part, tied and untied, and its cache.

The model is built on the meta device, which has shapes but no memory, so that what is counted is what will be built.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from gnomon.attention.multihead import head_width
from gnomon.errors import must_be
from gnomon.models.architectures import build
from gnomon.models.config import ModelConfig
from gnomon.models.presets import merge_settings, preset
from gnomon.models.stack import Stack

if TYPE_CHECKING:
    from gnomon.models.dry_step import Training

#: part -> a piece of the parameter's name that tells it; the first that fits
PARTS: Mapping[str, tuple[str, ...]] = {
    "tokens": ("input.tokens.",),
    "segments": ("input.types.",),
    "positions": ("input.position.", ".positions."),
    "attention": (".attention.", ".cross."),
    "feed_forward": (".ffn.",),
    "head": ("head.",),
    "norms": ("norm",),
}


@dataclass(frozen=True)
class Plan:
    """The numbers of one model.

    parts    parameters of each part: tokens, segments, positions, attention, feed_forward, norms, head
    tied     all of them when the head uses the token table; untied: when it has a table of its own
             (source and target of an encoder-decoder share theirs either way, unless source_vocab_size is given)
    states   numbers that the encoding of each layer that writes keeps of a token, besides its key and value
    """

    config: ModelConfig
    parts: Mapping[str, int]
    tied: int
    untied: int
    states: tuple[int, ...] = ()

    @property
    def total(self) -> int:
        """Parameters of the model as its config has it."""
        return self.tied if self.config.tied else self.untied

    @property
    def input_layer(self) -> int:
        """Parameters of the input layer: the tables of tokens and segments, and positions where they come in there."""
        at_input = self.config.at_input.acts == "input"
        return self.parts["tokens"] + self.parts["segments"] + (self.parts["positions"] if at_input else 0)

    @property
    def numbers_per_token(self) -> int:
        """What one token leaves in the cache: a key and a value of each key/value head in each layer that writes, and
        what encodings keep. A token of an encoder-decoder's source leaves as many keys and values; an encoder keeps
        nothing."""
        if self.config.architecture == "encoder-only":
            return 0
        return self.config.depth * self._numbers_per_layer + sum(self.states)

    @property
    def _numbers_per_layer(self) -> int:
        c = self.config
        heads = c.n_heads if c.n_kv_heads is None else c.n_kv_heads
        return 2 * heads * head_width(c.d_model, c.n_heads, c.d_head)

    def cache_bytes(self, context: int, dtype: torch.dtype = torch.float32, batch: int = 1) -> int:
        """Bytes of keys, values and states (8 a number) after `context` tokens; a layer with a window needs no more
        than it keeps."""
        c = self.config
        if c.architecture == "encoder-only":
            return 0
        held = [context if w is None else min(context, w + c.sink_tokens) for w in c.windows(c.depth)]
        states = sum(n * numbers for n, numbers in zip(held, self.states, strict=False))
        return batch * (sum(held) * self._numbers_per_layer * dtype.itemsize + 8 * states)

    def training(self, batch: int, length: int, dtype: torch.dtype = torch.float32) -> "Training":
        """Memory and operations of a training step on `batch` rows of `length` tokens, with AdamW and weights in
        float32, the products in `dtype`. The step is taken without memory, and what it allocates is counted."""
        from gnomon.models.dry_step import dry_step  # torch's counters bring much along

        return dry_step(self.config, batch, length, dtype)

    def contexts(self) -> list[int]:
        """Context lengths worth a row: 1024, 4096, ... 131072, or as far as a learned table reaches."""
        usual = [1024 * 4**n for n in range(4)] + [131072]
        rows = self.config.max_positions
        if rows is None or self.config.at_input.name != "learned":
            return usual
        return [n for n in usual if n < rows] + [rows]


def plan(config: ModelConfig | str, **changes: Any) -> Plan:
    """Count a model without allocating it: a config, or the name of a preset, with `changes` laid over it.

    >>> plan("gpt2-small").total
    124439808
    """
    must_be("config", config, ModelConfig | str, "a ModelConfig, or the name of a preset such as 'mini-gpt'")
    if isinstance(config, str):
        config = preset(config, **changes)
    elif changes:
        config = ModelConfig.from_dict(merge_settings(config.to_dict(), changes))
    counts = {tied: _count(replace(config, tied=tied)) for tied in (True, False)}
    parts = counts[config.tied]
    tied, untied = (sum(counts[tied].values()) for tied in (True, False))
    return Plan(config, parts, tied, untied, _states(config))


def _states(config: ModelConfig) -> tuple[int, ...]:
    """What the encoding of each layer keeps of a token."""
    with torch.device("meta"):
        model = build(config)
    *_, last = (part for part in model.children() if isinstance(part, Stack))
    return tuple(last.position_of(n).state_width for n in range(config.depth))


def _count(config: ModelConfig) -> dict[str, int]:
    with torch.device("meta"):
        model = build(config)
    counts = dict.fromkeys(PARTS, 0)
    for name, parameter in model.named_parameters():
        counts[_part(name)] += parameter.numel()
    return counts


def _part(name: str) -> str:
    return next(part for part, pieces in PARTS.items() if any(piece in name for piece in pieces))


__all__ = ["PARTS", "Plan", "plan"]
