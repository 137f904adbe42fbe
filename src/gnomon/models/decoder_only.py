"""DecoderOnly: ids -> input layer -> blocks -> head. The architecture of GPT and Llama; an encoder when not causal."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, Literal, Self

import torch
from torch import nn

from gnomon.attention.cache import Cache, GrowingCache, PreallocatedCache, RollingCache
from gnomon.attention.multihead import MultiHeadAttention, head_width
from gnomon.blocks import Activation, Block, FeedForward, Placement, default_width
from gnomon.blocks import placement as placement_class
from gnomon.data import Tokenizer
from gnomon.embed import InputLayer, Tied, Untied
from gnomon.embed.input import Combine
from gnomon.embed.table import Scale
from gnomon.errors import BadValue, unknown
from gnomon.generate import generate, stream
from gnomon.layout import Layout
from gnomon.models.config import ModelConfig, as_position, preset
from gnomon.norm import Norm, build_norm
from gnomon.positions import NoPE, PositionEncoding, Spec
from gnomon.positions.base import Tables, wide
from gnomon.shapes import Float, Int
from gnomon.trace import Trace


class DecoderOnly(nn.Module):
    """A stack of blocks over one input layer, with logits over the vocabulary.

    >>> model = DecoderOnly(vocab_size=512, d_model=128, n_layers=2, n_heads=4, position="alibi")
    >>> model(torch.tensor([[76, 299, 412]])).shape
    torch.Size([1, 3, 512])
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        n_layers: int,
        n_heads: int,
        *,
        position: str | Spec | Sequence[str | Spec] = "rope",
        max_positions: int | None = None,
        n_kv_heads: int | None = None,
        d_head: int | None = None,
        d_ff: int | None = None,
        activation: Activation = "gelu",
        gated: bool = False,
        norm: Norm = "layernorm",
        norm_eps: float = 1e-5,
        placement: Placement = "pre",
        bias: bool = True,
        dropout: float = 0.0,
        causal: bool = True,
        window: int | None = None,
        tied: bool = True,
        embed_scale: Scale = None,
        d_embed: int | None = None,
        padding_id: int | None = None,
        init_std: float = 0.02,
        combine: Combine = "add",
        position_dim: int | None = None,
    ) -> None:
        """position       a name, gn.positions.get(...), or a list with one per layer (encodings that act in attention)
        max_positions  rows of a learned table
        n_kv_heads     key/value heads shared by groups of query heads; d_head: width of a head, default D / H
        d_ff           feed-forward width, default 4 D (8/3 D when gated); activation, gated: see FeedForward
        norm, norm_eps, placement   "layernorm" or "rmsnorm", "pre" or "post"
        bias           biases in the linear layers; dropout: input, attention weights and residuals
        causal         False makes it an encoder with token logits (S1); window: nearest tokens seen in each layer
        tied           the head uses the token table; embed_scale, d_embed, padding_id: see TokenEmbedding
        init_std       of linear layers and tables; projections into the residual stream get it / sqrt(2 n_layers)
        combine        how an encoding that acts at the input meets the token vectors, and position_dim: see InputLayer
        """
        super().__init__()
        self.config = ModelConfig(
            vocab_size, d_model, n_layers, n_heads, as_position(position), max_positions, n_kv_heads, d_head, d_ff,
            activation, gated, norm, norm_eps, placement, bias, dropout, causal, window, tied, embed_scale, d_embed,
            padding_id, init_std, combine, position_dim,
        )  # fmt: skip
        at_input, per_layer = _split_positions(self.config)
        self.input = InputLayer(
            vocab_size, d_model, position=at_input, max_positions=max_positions, scale=embed_scale, dropout=dropout,
            padding_id=padding_id, d_embed=d_embed, std=init_std, combine=combine, position_dim=position_dim,
        )  # fmt: skip
        self.blocks = nn.ModuleList(self._block() for _ in range(n_layers))
        self.norm = build_norm(norm, d_model, norm_eps) if placement == "pre" else nn.Identity()
        self.head = Tied(self.input.tokens) if tied else Untied(d_model, vocab_size, std=init_std)
        init_linears(self.blocks, init_std, n_layers)
        sizes = {
            "d_model": d_model,
            "d_head": head_width(d_model, n_heads, d_head),
            "n_heads": n_heads,
            "causal": causal,
        }
        chosen = list(dict.fromkeys(per_layer))
        self.positions = nn.ModuleList(spec.build(**sizes) for spec in chosen)
        self._of_layer = [chosen.index(spec) for spec in per_layer]
        self.tokenizer: Tokenizer | None = None

    def _block(self) -> Block:
        c = self.config
        around = placement_class(c.placement)
        attention = MultiHeadAttention(
            c.d_model, c.n_heads, c.n_kv_heads, c.d_head,
            causal=c.causal, window=c.window, bias=c.bias, dropout=c.dropout,
        )  # fmt: skip
        d_ff = default_width(c.d_model, c.gated) if c.d_ff is None else c.d_ff
        ffn = FeedForward(c.d_model, d_ff, c.activation, c.gated, c.bias)
        return Block(attention, ffn, *(around(c.d_model, c.norm, c.norm_eps, c.dropout) for _ in range(2)))

    @classmethod
    def from_config(cls, config: ModelConfig) -> Self:
        """Build from a ModelConfig."""
        return cls(**{f.name: getattr(config, f.name) for f in fields(config)})

    @classmethod
    def from_preset(cls, name: str, **changes: Any) -> Self:
        """Build a preset, with changes: `from_preset("mini-gpt", position="rope")`."""
        return cls.from_config(preset(name, **changes))

    # ------------------------------------------------------------------ forward

    def forward(
        self, ids: Int, at: Layout | None = None, cache: Cache | None = None, trace: Trace | None = None
    ) -> Float:
        """ids (B, T) -> logits (B, T, V).

        at     where the tokens sit; default: 0..T-1, or right after what the cache holds
        cache  keys and values of earlier calls, extended by this one
        trace  written to: vectors, residual stream and attention weights
        """
        return self.head(self.hidden(ids, at, cache, trace))  # type: ignore[no-any-return]

    def hidden(
        self, ids: Int, at: Layout | None = None, cache: Cache | None = None, trace: Trace | None = None
    ) -> Float:
        """ids (B, T) -> the last hidden state (B, T, D), ready for the head."""
        at = place(ids, at, cache)
        x = self.input(ids, at, trace=trace)
        k_at = at if cache is None else cache.extend(at)
        if trace is not None:
            trace.add_hidden(x)
        tables: list[Tables] = [position.prepare(at, wide(x.dtype)) for position in self._encodings()]
        for layer, block in enumerate(self.blocks):
            n = self._of_layer[layer]
            x = block(x, self.positions[n], tables[n], at, k_at, layer, cache, trace)
        if cache is not None:
            cache.commit()
        return self.norm(x)  # type: ignore[no-any-return]

    def _encodings(self) -> list[PositionEncoding]:
        return [p for p in self.positions if isinstance(p, PositionEncoding)]

    def check(self, at: Layout) -> None:
        """Raise BadValue if an encoding has no meaning at these positions, before anything is computed."""
        for position in (*self._encodings(), self.input.position):
            if position is not None:
                position.check(at)

    def position_of(self, layer: int) -> PositionEncoding:
        """The encoding that acts in this layer's attention ("none" where position came in at the input)."""
        return self._encodings()[self._of_layer[layer]]

    def cache(
        self, kind: Literal["growing", "preallocated", "rolling"] = "growing", capacity: int = 0, rollback: int = 0
    ) -> Cache:
        """An empty cache for this model. preallocated needs a capacity in tokens; rolling needs a model with a window
        and can go back `rollback` tokens."""
        if kind == "growing":
            return GrowingCache()
        if kind == "preallocated":
            return PreallocatedCache(capacity)
        if kind != "rolling":
            raise unknown("cache", kind, ("growing", "preallocated", "rolling"))
        if self.config.window is None:
            raise BadValue("a rolling cache forgets tokens that this model still looks at: build it with window=...")
        return RollingCache(self.config.window, rollback)

    # ------------------------------------------------------------------ writing

    generate = generate  #: model.generate("text", ...) is gnomon.generate.generate(model, "text", ...)
    stream = stream

    # ------------------------------------------------------------------ changing the vocabulary

    def resize(self, vocab_size: int, pad_to_multiple: int = 1) -> int:
        """Change the vocabulary; rounded up to a multiple, returned. Old rows keep their bits, a tie stays a tie."""
        size = -(-vocab_size // pad_to_multiple) * pad_to_multiple
        self.input.tokens.resize(size)
        self.head.resize(size)
        self.config = replace(self.config, vocab_size=size)
        return size


def place(ids: Int, at: Layout | None, cache: Cache | None) -> Layout:
    """The Layout of these ids: the given one, stretched over the batch, or the natural one. Raises BadValue where a
    given one does not continue what the cache holds."""
    if ids.dim() != 2 or ids.numel() == 0:
        raise BadValue(f"token ids have shape (batch, tokens) with at least one of each, got {tuple(ids.shape)}")
    held = None if cache is None else cache.at
    if at is None:
        return Layout.dense(ids.shape[0], ids.shape[1], ids.device) if held is None else held.then(ids.shape[1])
    at = at.expand(ids.shape[0])
    if at.shape != tuple(ids.shape):
        raise BadValue(f"the layout places {at.shape[1]} tokens a row, but {ids.shape[1]} were given")
    if held is not None and not torch.compiler.is_compiling():
        last = torch.where(held.real, held.step, -1).amax(1)
        first = torch.where(at.real, at.step, last[:, None] + 1).amin(1)
        dense = held.kind == at.kind == "dense"
        late = (first != last + 1) if dense else (first <= last)
        if bool(late.any()):
            row = int(late.nonzero()[0])
            raise BadValue(
                f"row {row}: the cache holds tokens up to step {int(last[row])}, but the new ones start at step "
                f"{int(first[row])}. Leave the layout out, or take cache.then(n); a prefix cannot be split"
            )
    return at


def init_linears(module: nn.Module, std: float, n_layers: int) -> None:
    """Normal weights, zero biases; smaller where the residual stream is written (Radford et al. 2019, section 2.3)."""
    for name, part in module.named_modules():
        if isinstance(part, nn.Linear):
            into_stream = name.endswith((".out", ".down"))
            nn.init.normal_(part.weight, std=std / (2 * n_layers) ** 0.5 if into_stream else std)
            if part.bias is not None:
                nn.init.zeros_(part.bias)


def _split_positions(config: ModelConfig) -> tuple[Spec, list[Spec]]:
    """The encoding of the input layer, and that of each layer's attention."""
    nothing, n = Spec(NoPE), config.n_layers
    if isinstance(config.position, Spec):
        return (config.position, [nothing] * n) if config.position.acts == "input" else (nothing, [config.position] * n)
    if len(config.position) != n:
        raise BadValue(f"position lists {len(config.position)} encodings for {n} layers; give one per layer")
    for spec in config.position:
        if spec.acts == "input":
            raise BadValue(
                f"{spec.name} acts at the input, not in a layer: choose it for the whole model, not in a list"
            )
    return nothing, list(config.position)


__all__ = ["DecoderOnly", "init_linears", "place"]
