"""InputLayer: from token ids to what the first block reads.

x = drop(norm(combine(s E[ids] + types, position.vectors(at))))
"""

from typing import Literal

import torch
from torch import nn

from gnomon.embed.table import Scale, TokenEmbedding
from gnomon.errors import BadValue, unknown
from gnomon.glossary import synonyms
from gnomon.layout import Layout
from gnomon.norm import Norm, build_norm
from gnomon.positions.base import PositionEncoding, Spec, get, own_draws, wide
from gnomon.shapes import Float, Int
from gnomon.trace import Trace

Combine = Literal["add", "concat"]


class Placing(nn.Module):
    """What happens to token vectors before the first block: types and position are added, the sum is normed."""

    def __init__(
        self,
        d_model: int,
        *,
        position: str | Spec | PositionEncoding = "none",
        max_positions: int | None = None,
        combine: Combine = "add",
        position_dim: int | None = None,
        norm: Norm | None = None,
        norm_eps: float = 1e-5,
        dropout: float = 0.0,
        n_types: int = 0,
        std: float | None = None,
    ) -> None:
        """position       a name, a Spec or a ready encoding
        max_positions  rows of a learned table
        combine        "add", or "concat": position_dim channels beside the token's, then a projection to d_model (S12)
        norm, norm_eps of the sum (BERT); dropout: once, on the sum
        n_types        rows of a token-type (segment) table that is added too; std: of its initial rows
        """
        super().__init__()
        if combine not in ("add", "concat"):
            raise unknown("way to combine", combine, ("add", "concat"), synonyms())
        if (position_dim is not None) != (combine == "concat"):
            raise BadValue(f"position_dim goes with combine='concat' and only with it; got {combine=}, {position_dim=}")
        self.combine = combine
        self.types = TokenEmbedding(n_types, d_model, None, std=std) if n_types else None
        self.position = build_at_input(position, position_dim or d_model, max_positions)
        widened = d_model + (position_dim or 0)
        with own_draws():  # so that the rest of a model starts with the same weights however position comes in
            self.project = nn.Linear(widened, d_model) if combine == "concat" and self.position is not None else None
        self.norm = None if norm is None else build_norm(norm, d_model, norm_eps)
        self.drop = nn.Dropout(dropout)

    def place(
        self, tokens: TokenEmbedding, ids: Int, at: Layout | None, types: Int | None = None, trace: Trace | None = None
    ) -> Float:
        """ids (B, T) -> (B, T, D), with their vectors from `tokens`."""
        at = Layout.dense(ids.shape[0], ids.shape[1], ids.device) if at is None else at.expand(ids.shape[0])
        if self.position is not None and not torch.compiler.is_compiling():
            self.position.check(at)
        if at.doc is not None:
            ids = ids.masked_fill(~at.real, 0)  # whatever id stands in a padded slot, nothing reads it
        x = tokens(ids)
        if self.types is not None:
            x = x + self.types(torch.zeros_like(ids) if types is None else types)
        elif types is not None:
            raise BadValue("token types were given but this layer has no table for them: build it with n_types")
        p = None if self.position is None else self.position.vectors(at, wide(x.dtype))
        if trace is not None:
            trace.tokens, trace.position = x.detach(), None if p is None else p.detach()
        if p is not None:
            p = p.to(x.dtype)
            x = x + p if self.project is None else self.project(torch.cat([x, p.expand(len(x), -1, -1)], -1))
        x = x if self.norm is None else self.norm(x)
        return self.drop(x)  # type: ignore[no-any-return]


class InputLayer(Placing):
    """Token vectors with their positions (S10): `InputLayer(50000, 512, position="sinusoidal", dropout=0.1)`.

    An encoding that acts in attention ("rope", "alibi", "t5", "none") adds nothing here.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        *,
        position: str | Spec | PositionEncoding = "none",
        max_positions: int | None = None,
        combine: Combine = "add",
        position_dim: int | None = None,
        scale: Scale = "sqrt",
        norm: Norm | None = None,
        norm_eps: float = 1e-5,
        dropout: float = 0.0,
        padding_id: int | None = None,
        d_embed: int | None = None,
        n_types: int = 0,
        std: float | None = None,
    ) -> None:
        """scale, padding_id, d_embed, std: of the token table, see TokenEmbedding. The rest: see Placing."""
        tokens = TokenEmbedding(vocab_size, d_model, scale, padding_id, d_embed, std)
        super().__init__(
            d_model, position=position, max_positions=max_positions, combine=combine, position_dim=position_dim,
            norm=norm, norm_eps=norm_eps, dropout=dropout, n_types=n_types, std=std,
        )  # fmt: skip
        self.tokens = tokens

    def forward(
        self, ids: Int, at: Layout | None = None, types: Int | None = None, trace: Trace | None = None
    ) -> Float:
        """ids (B, T) -> (B, T, D). `at` says where the tokens sit (default 0..T-1); `types` (B, T) their segments."""
        return self.place(self.tokens, ids, at, types, trace)


def build_at_input(
    position: str | Spec | PositionEncoding, d_model: int, max_positions: int | None
) -> PositionEncoding | None:
    """The module if this encoding acts at the input, else None."""
    if isinstance(position, PositionEncoding):
        return position if position.acts == "input" else None
    spec = get(position) if isinstance(position, str) else position
    if spec.acts != "input":
        return None
    return spec.build(d_model=d_model, **({} if max_positions is None else {"max_positions": max_positions}))


__all__ = ["Combine", "InputLayer", "Placing"]
