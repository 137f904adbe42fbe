"""Multi-head, grouped-query and multi-query attention: projections around `attend`.

    head_h = attention(x Wq_h, x Wk_g(h), x Wv_g(h));   out = [head_1 .. head_H] Wo     (Vaswani et al. 2017, 3.2.2)

Grouped-query attention (Ainslie et al. 2023, arXiv:2305.13245) lets H / K neighbouring query heads share one
key/value head; K = 1 is multi-query (Shazeer 2019, arXiv:1911.02150).
"""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any, Literal

import torch
from torch import nn

from gnomon.attention.attend import NOTHING, attention, check_built
from gnomon.attention.cache import Cache
from gnomon.attention.dense import AttentionSettings, Content, ScoreSettings, scores, share_heads, weights
from gnomon.errors import BadValue, must_be, wrong
from gnomon.kinds import Setting
from gnomon.layout import Layout, layout_of
from gnomon.linear import Linear
from gnomon.norm import Norm, NormSettings, build_norm
from gnomon.positions.base import PositionEncoding, Tables
from gnomon.settings import DropoutSettings, LinearSettings, WidthSettings, make_settings, takes, values_of
from gnomon.shapes import Float
from gnomon.trace import Trace

NHeads = Annotated[int, Setting("query heads", least=1, most=2**16)]


@dataclass(frozen=True, kw_only=True)
class MultiHeadSettings(ScoreSettings, NormSettings, DropoutSettings, LinearSettings):
    """Attention"""

    n_kv_heads: Annotated[
        int | None,
        Setting(
            "key/value heads, each shared by n_heads / n_kv_heads query heads; default n_heads",
            least=1,
            most=2**16,
            source="arXiv:2305.13245",
        ),
    ] = None
    d_head: Annotated[int | None, Setting("width of a head; default d_model / n_heads", least=1, most=2**20)] = None
    attention_scale: Annotated[
        float | None, Setting("what q . k is multiplied by; default 1 / sqrt(d_head). A bias is added after it")
    ] = None
    sinks: Annotated[
        bool,
        Setting(
            "a learned logit per head that takes its share of the softmax and gives nothing",
            source="gpt-oss, arXiv:2508.10925",
        ),
    ] = False
    qk_norm: Annotated[
        bool | Literal["joint"],
        Setting(
            "RMSNorm on the queries and keys of each head, or 'joint' over all heads together",
            source="arXiv:2302.05442, section 2; joint: OLMo 2, arXiv:2501.00656, section 3.2",
        ),
    ] = False
    qkv_bias: Annotated[bool | None, Setting("biases of the projections to queries, keys and values; default bias")] = (
        None
    )
    out_bias: Annotated[bool | None, Setting("bias of attention's last projection; default bias")] = None


@dataclass(frozen=True)
class LayerSettings(MultiHeadSettings, WidthSettings):
    """A layer of attention"""

    n_heads: NHeads
    _: KW_ONLY
    causal: Annotated[bool, Setting("a token sees only itself and what came before it")] = True
    window: Annotated[int | None, Setting("nearest tokens seen, itself included; none: all", least=1)] = None


class MultiHeadAttention(nn.Module):
    """Self-attention with H query heads and K key/value heads of width C."""

    @takes(LayerSettings)
    def __init__(self, d_model: int, n_heads: int, **settings: Any) -> None:
        """The sizes, and any other setting."""
        super().__init__()
        s = make_settings(LayerSettings, d_model=d_model, n_heads=n_heads, **settings)
        self.n_heads, self.n_kv_heads = n_heads, n_heads if s.n_kv_heads is None else s.n_kv_heads
        self.d_head = head_width(d_model, n_heads, s.d_head)
        if n_heads % self.n_kv_heads:
            raise BadValue(
                f"n_heads={n_heads} must be a multiple of n_kv_heads={self.n_kv_heads}: each key/value head serves an "
                "equal share of the query heads"
            )
        qkv_bias, out_bias = (s.bias if own is None else own for own in (s.qkv_bias, s.out_bias))
        self.q = Linear(d_model, n_heads * self.d_head, qkv_bias)
        self.k = Linear(d_model, self.n_kv_heads * self.d_head, qkv_bias)
        self.v = Linear(d_model, self.n_kv_heads * self.d_head, qkv_bias)
        self.out = Linear(n_heads * self.d_head, d_model, out_bias)
        self.sinks = nn.Parameter(torch.zeros(n_heads)) if s.sinks else None
        self.joint_norm, self.dropout = s.qk_norm == "joint", s.dropout
        self.q_norm, self.k_norm = self._norm(s, n_heads), self._norm(s, self.n_kv_heads)
        scale = self.d_head**-0.5 if s.attention_scale is None else s.attention_scale
        self.settings = AttentionSettings(
            **values_of(ScoreSettings, s), causal=s.causal, window=s.window, scale=scale
        )  #: but for what training changes, dropout and sinks

    def _norm(self, s: LayerSettings, n: int) -> nn.Module:
        """Of the queries or keys of n heads; of Gemma's kind where the model's norms are."""
        if not s.qk_norm:
            return nn.Identity()
        kind: Norm = "rmsnorm_plus_one" if s.norm == "rmsnorm_plus_one" else "rmsnorm"
        return build_norm(kind, self.d_head * (n if self.joint_norm else 1), s.norm_eps)

    def queries(self, x: Float) -> Float:
        """x (B, T, D) -> q (B, H, T, C)."""
        return self._normed(self.q_norm, self.q(x), self.n_heads)

    def keys_values(self, x: Float) -> tuple[Float, Float]:
        """x (B, S, D) -> k and v (B, K, S, C)."""
        return self.keys(x), self._heads(self.v(x), self.n_kv_heads)

    def keys(self, x: Float) -> Float:
        """x (B, S, D) -> k (B, K, S, C)."""
        return self._normed(self.k_norm, self.k(x), self.n_kv_heads)

    def _normed(self, norm: nn.Module, y: Float, n: int) -> Float:
        """(B, T, n C) -> (B, n, T, C), normed, in y's dtype: under autocast some devices widen a norm, and values stay
        narrow."""
        z = self._heads(norm(y), n) if self.joint_norm else norm(self._heads(y, n))
        return z.to(y.dtype)

    def _heads(self, y: Float, n: int) -> Float:
        """(B, T, n C) -> (B, n, T, C)."""
        return y.view(y.shape[0], y.shape[1], n, self.d_head).transpose(1, 2)

    def forward(
        self,
        x: Float,
        position: PositionEncoding | None = None,
        tables: Tables = None,
        at: Layout | None = None,
        k_at: Layout | None = None,
        layer: int = 0,
        cache: Cache | None = None,
        trace: Trace | None = None,
    ) -> Float:
        """x (B, T, D) at `at` attends to everything at `k_at` (the same tokens, or the cache's and these).

        Alone it is `attention(x)`. position: a built encoding that acts in attention, None for none; tables: what its
        `prepare_for` gave where several layers share it; at: 0..T-1 where it is not given. With a cache,
        `k_at = cache.extend(at)` comes before and `cache.commit()` after it.
        """
        position, at, k_at = self._placed(x, position, at, k_at, cache, trace)
        if not isinstance(tables, tuple | None):
            raise wrong("tables", tables, "what prepare_for gave", "positions go in at=gn.Layout.placed(positions)")
        if tables is None:
            tables = position.of_layer(position.prepare_for(at, k_at, x.dtype), 0)
        q, (k, v) = self.queries(x), self.keys_values(x)
        q, k = position.query(q, tables), position.key(k, tables)
        content = self.content(x, position, tables, at, layer, cache) if position.acts == "attention" else None
        if cache is not None:
            k, v = cache.update(layer, k, v)
        done, seen, before = [], [], []
        for part, keys in position.read(k, tables):
            here = at if part == slice(None) else at.tokens(part)
            done.append(self.attend(q[:, :, part], keys, v, position, here, k_at, content))
            if trace is not None:
                seen.append(self.weights(q[:, :, part], keys, position, here, k_at, content))
                if trace.scores is not None:
                    before.append(self.scores(q[:, :, part], keys, position, here, k_at, content))
        if trace is not None:
            trace.add_attention(torch.cat(seen, 2))
            if before:
                trace.add_scores(torch.cat(before, 2))
        return done[0] if len(done) == 1 else torch.cat(done, 1)

    def content(
        self, x: Float, position: PositionEncoding, tables: Tables, at: Layout, layer: int, cache: Cache | None
    ) -> Content:
        """What an encoding that acts in attention reads besides queries and keys; its states enter the cache."""

        made = self._projected(position, tables, layer, cache)
        state = position.state(x, made, at, None if cache is None else cache.states_of(layer))
        held = state if state is None or cache is None else cache.update_state(layer, state)
        return Content(made or (), state, held)

    def _projected(self, position: PositionEncoding, tables: Tables, layer: int, cache: Cache | None) -> Tables:
        """The tables of an encoding once this layer has projected them, which a cache keeps."""
        if type(position).project is PositionEncoding.project:
            return tables

        def queries(y: Float) -> Float:
            return self.queries(y.to(self.q.weight.dtype))

        def keys(y: Float) -> Float:
            return share_heads(self.keys(y.to(self.k.weight.dtype)), self.n_heads)

        def make() -> Tables:
            return position.project(tables, queries, keys)

        return make() if cache is None else cache.tables(layer, make)

    def _placed(
        self,
        x: Float,
        position: PositionEncoding | None,
        at: Layout | None,
        k_at: Layout | None,
        cache: Cache | None,
        trace: Trace | None,
    ) -> tuple[PositionEncoding, Layout, Layout]:
        """The encoding and the layouts, checked, with what was left out filled in."""
        fits = isinstance(x, torch.Tensor) and x.is_floating_point() and x.dim() == 3
        if not fits or x.shape[2] != self.q.in_features:
            raise wrong("x", x, f"a floating-point tensor, (batch, tokens, d_model = {self.q.in_features})")
        check_built(position)
        must_be("cache", cache, Cache | None, "a GrowingCache(), for one")
        must_be("trace", trace, Trace | None, "gn.Trace()")
        placed = layout_of(at, x.shape[0], x.shape[1], x.device)
        at = placed if at is None else at  # one row stays one row, and the object that k_at may be
        if k_at is None and cache is not None:
            raise BadValue("with a cache, say where its keys sit: k_at = cache.extend(at), and cache.commit() after it")
        return NOTHING if position is None else position, at, at if k_at is None else k_at

    def attend(
        self,
        q: Float,
        k: Float,
        v: Float,
        position: PositionEncoding,
        at: Layout,
        k_at: Layout,
        content: Content | None = None,
    ) -> Float:
        """Attention with this module's settings, heads joined and projected: (B, T, D)."""
        settings, dropout = self.settings, self.dropout if self.training else 0.0
        if self.sinks is not None or dropout:
            settings = replace(settings, sinks=self.sinks, dropout=dropout)
        y = attention(q, k, v, position, at, k_at, settings, content=content)
        return self.out(y.transpose(1, 2).flatten(2))

    def weights(
        self, q: Float, k: Float, position: PositionEncoding, at: Layout, k_at: Layout, content: Content | None = None
    ) -> Float:
        """The attention weights (B, H, T, S) by the dense definition."""
        settings = replace(self.settings, sinks=self.sinks)
        return weights(q, share_heads(k, self.n_heads), position, at, k_at, settings, content)

    def scores(
        self, q: Float, k: Float, position: PositionEncoding, at: Layout, k_at: Layout, content: Content | None = None
    ) -> Float:
        """What the softmax reads (B, H, T, S) by the dense definition, -inf where a query may not look."""
        return scores(q, share_heads(k, self.n_heads), position, at, k_at, self.settings, content)

    def extra_repr(self) -> str:
        """Shown by print(module)."""
        s = self.settings
        window = "" if s.window is None else f", window={s.window}"
        return f"n_heads={self.n_heads}, n_kv_heads={self.n_kv_heads}, d_head={self.d_head}, causal={s.causal}{window}"


def head_width(d_model: int, n_heads: int, d_head: int | None) -> int:
    """d_head, or d_model / n_heads where it is not given."""
    for name, size in (("n_heads", n_heads), ("d_model", d_model), ("d_head", d_head)):
        if size is not None and size < 1:
            raise BadValue(f"{name} must be at least 1, got {size}")
    if d_head is None and d_model % n_heads:
        raise BadValue(
            f"d_model={d_model} does not divide into n_heads={n_heads} heads; choose a multiple, or give d_head"
        )
    return d_model // n_heads if d_head is None else d_head


__all__ = ["LayerSettings", "MultiHeadAttention", "MultiHeadSettings", "head_width"]
