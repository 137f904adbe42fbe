"""The meaning of attention, in the plainest code there is. Every kernel must equal it, forward and backward.

out = softmax(q . k^T * scale + bias, over visible keys) . v        (Vaswani et al. 2017, section 3.2.1)

Two things may be done to the scores: a soft cap c tanh(s / c) before the mask (Gemma 2, arXiv:2408.00118, section 2),
and one more logit per head, learned, that takes its share of the softmax and gives nothing (gpt-oss, arXiv:2508.10925).
"""

from dataclasses import dataclass, field
from typing import Annotated

import torch
from torch.nn import functional as F

from gnomon.device import autocast_type
from gnomon.kinds import Setting
from gnomon.layout import Layout, visible
from gnomon.positions.base import PositionEncoding, Side, position_dtype
from gnomon.shapes import Bool, Float


@dataclass(frozen=True, kw_only=True)
class ScoreSettings:
    """Scores of attention"""

    softcap: Annotated[
        float | None,
        Setting("c of c tanh(s / c), which a score s becomes", above=0, source="Gemma 2, arXiv:2408.00118"),
    ] = None
    sink_tokens: Annotated[
        int,
        Setting(
            "first tokens of a document that stay visible from outside the window",
            least=0,
            most=2**40,
            source="arXiv:2309.17453",
        ),
    ] = 0


@dataclass(frozen=True, kw_only=True)
class AttentionSettings(ScoreSettings):
    """Attention"""

    causal: Annotated[bool, Setting("a query sees no key after it")] = True
    window: Annotated[int | None, Setting("nearest tokens seen, itself included; none: all", least=1)] = None
    scale: Annotated[float | None, Setting("of q . k; default 1 / sqrt(C). A bias is added after it")] = None
    dropout: Annotated[float, Setting("share of the weights; a caller gives 0 outside training", least=0, below=1)] = (
        0.0
    )
    sinks: Annotated[Float | None, Setting("(H,) learned logits that take part in the softmax and give nothing")] = (
        field(default=None, compare=False)
    )

    def scale_of(self, q: Float) -> float:
        """What the scores of queries (..., C) are multiplied by."""
        return q.shape[-1] ** -0.5 if self.scale is None else self.scale


@dataclass(frozen=True, eq=False)
class Content:
    """What an encoding that acts in attention reads besides queries and keys: the tables of its layer, and the states
    (B, N, T, W) and (B, N, S, W) that it made of the tokens of either side.

    lag: how many keys follow that of the last query, where both sides count up by one in time; None: not known.
    """

    tables: tuple[Float, ...] = ()
    q: Float | None = None
    k: Float | None = None
    lag: int | None = None

    @classmethod
    def of(cls, position: PositionEncoding) -> "Content":
        """What a built encoding has by itself: the tables of its first layer."""
        return cls(position.of_layer(None, 0) or ())

    def to(self, dtype: torch.dtype) -> "Content":
        """The same with tables in this dtype; states are wide already."""
        return Content(tuple(x.to(dtype) for x in self.tables), self.q, self.k, self.lag)


def dense(
    q: Float,
    k: Float,
    v: Float,
    position: PositionEncoding,
    at: Layout,
    k_at: Layout,
    settings: AttentionSettings,
    content: Content | None = None,
) -> Float:
    """q (B, H, T, C), k and v (B, H, S, C) -> (B, H, T, C). A query that may see no key gets 0."""
    content = (Content.of(position) if content is None else content).to(position_dtype(q.dtype))
    p = weights(q, k, position, at, k_at, settings, content)
    with torch.autocast(autocast_type(q.device), enabled=False):
        p = F.dropout(p, settings.dropout)
        return position.values(p, v.to(p.dtype), content.tables, at, k_at, content.lag).to(v.dtype)


def weights(
    q: Float,
    k: Float,
    position: PositionEncoding,
    at: Layout,
    k_at: Layout,
    settings: AttentionSettings,
    content: Content | None = None,
) -> Float:
    """The attention weights (B, H, T, S), in float32 or wider."""
    s, ok = _scores(q, k, position, at, k_at, settings, content)
    with torch.autocast(autocast_type(q.device), enabled=False):
        return masked_softmax(s, ok, None if settings.sinks is None else settings.sinks.to(s.dtype)[:, None, None])


def scores(
    q: Float,
    k: Float,
    position: PositionEncoding,
    at: Layout,
    k_at: Layout,
    settings: AttentionSettings,
    content: Content | None = None,
) -> Float:
    """What the softmax reads (B, H, T, S), in float32 or wider; -inf where a query may not look."""
    s, ok = _scores(q, k, position, at, k_at, settings, content)
    return s.masked_fill(~ok, float("-inf"))


def _scores(
    q: Float,
    k: Float,
    position: PositionEncoding,
    at: Layout,
    k_at: Layout,
    settings: AttentionSettings,
    content: Content | None,
) -> tuple[Float, Bool]:
    """Scores (B, H, T, S), and where they count (B or 1, 1, T, S)."""
    q, k = q.to(position_dtype(q.dtype)), k.to(position_dtype(k.dtype))
    content = (Content.of(position) if content is None else content).to(q.dtype)
    ok = visible(at, k_at, settings.causal, settings.window, settings.sink_tokens)
    with torch.autocast(autocast_type(q.device), enabled=False):
        sides = Side(q, at, content.q, content.lag), Side(k, k_at, content.k)
        s = position.scores(*sides, content.tables, ok, settings.scale_of(q))
        return (s if settings.softcap is None else settings.softcap * torch.tanh(s / settings.softcap)), ok


def masked_softmax(s: Float, ok: Bool, sink: Float | None = None) -> Float:
    """Softmax over the last axis where `ok`; a row without any `ok` is all 0, and so is its gradient.

    sink: one more logit a row, whose weight is left out of the result.
    """
    s = s.masked_fill(~ok, float("-inf"))
    top = s.amax(-1, keepdim=True).detach()
    top = top if sink is None else torch.maximum(top, sink.detach())
    top = torch.where(top.isfinite(), top, 0.0)
    e = (s - top).exp()
    z = e.sum(-1, keepdim=True)
    z = z if sink is None else z + (sink - top).exp()
    return e / torch.where(z == 0, 1.0, z)


def share_heads(x: Float, n_heads: int) -> Float:
    """(B, K, S, C) -> (B, H, S, C): each key/value head serves H / K neighbouring query heads (a, a, b, b)."""
    return x if x.shape[1] == n_heads else x.repeat_interleave(n_heads // x.shape[1], 1)


__all__ = [
    "AttentionSettings",
    "Content",
    "ScoreSettings",
    "dense",
    "masked_softmax",
    "scores",
    "share_heads",
    "weights",
]
