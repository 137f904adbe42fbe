"""InputLayer: from token ids to what the first block reads.

x = drop(norm(combine(s E[ids] + types, position.vectors(at))))

Token and position enter at comparable sizes, whatever the encoding, or the smaller of them is hardly seen for long: a
learned table is drawn as large as tokens are, and beside vectors of a fixed size, such as sinusoids, token vectors have
unit size (by default E of std D^-0.5, times sqrt(D): Vaswani et al. 2017, section 3.4, and its authors' code).
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from torch import nn

from gnomon.embed.table import Scale, TableSettings, TokenEmbedding, check_shape
from gnomon.errors import BadValue, check_arguments, must_be, unknown
from gnomon.glossary import message, synonyms
from gnomon.kinds import Setting
from gnomon.layout import Layout, layout_of
from gnomon.linear import Linear
from gnomon.norm import Norm, build_norm
from gnomon.positions.base import PositionEncoding, position_dtype
from gnomon.positions.registry import get
from gnomon.positions.spec import Spec, forked_rng
from gnomon.shapes import Float, Int
from gnomon.trace import Trace

Combine = Literal["add", "concat"]
UNBALANCED = 8.0  #: how many times one may be the other before it is worth a word


@dataclass(frozen=True, kw_only=True)
class InputSettings(TableSettings):
    """Input layer"""

    combine: Annotated[Combine, Setting("how an encoding that acts at the input meets the token vectors")] = "add"
    position_dim: Annotated[
        int | None, Setting("channels of position beside the token's, for combine='concat'", least=1, most=2**20)
    ] = None
    n_types: Annotated[
        int,
        Setting(
            "rows of a table of token types (segments); 0 for none",
            least=0,
            most=2**20,
            source="BERT, arXiv:1810.04805",
        ),
    ] = 0
    input_norm: Annotated[Norm | None, Setting("norm of what enters the first block; default none")] = None
    d_input: Annotated[
        int | None,
        Setting(
            "width of the whole input layer, positions and norm too, before a projection to d_model; default d_model",
            least=1,
            most=2**20,
            source="ALBERT, arXiv:1909.11942, and ELECTRA, arXiv:2003.10555, in their code",
        ),
    ] = None


class InputEmbedding(nn.Module):
    """What happens to token vectors before the first block: types and position are added, the sum is normed."""

    @check_arguments
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
        size: float = 0.02,
        d_output: int | None = None,
    ) -> None:
        """position       a name, a Spec or a ready encoding
        max_positions  rows of a learned table
        combine        "add", or "concat": position_dim channels beside the token's, then a projection to d_model
        norm, norm_eps of the sum (BERT); dropout: once, on the sum
        n_types        rows of a token-type (segment) table that is added too
        size           root mean square of token vectors at first, with which tables of types and positions are drawn
        d_output       width after a projection at the end, default none
        """
        super().__init__()
        if combine not in ("add", "concat"):
            raise unknown("way to combine", combine, ("add", "concat"), synonyms())
        if (position_dim is not None) != (combine == "concat"):
            raise BadValue(f"position_dim goes with combine='concat' and only with it; got {combine=}, {position_dim=}")
        if not 0 <= dropout < 1:
            raise BadValue(f"dropout is a share of the channels, at least 0 and below 1; got {dropout}")
        self.combine = combine
        self.types = TokenEmbedding(n_types, d_model, None, std=size) if n_types else None
        self.position = build_at_input(position, position_dim or d_model, max_positions, size)
        widened = d_model + (position_dim or 0)
        with forked_rng():  # so that the rest of a model starts with the same weights however position comes in
            self.project = Linear(widened, d_model) if combine == "concat" and self.position is not None else None
        self.norm = None if norm is None else build_norm(norm, d_model, norm_eps)
        self.drop = nn.Dropout(dropout)
        self.enter = None if d_output is None else Linear(d_model, d_output)

    def embed(
        self, tokens: TokenEmbedding, ids: Int, at: Layout | None, types: Int | None = None, trace: Trace | None = None
    ) -> Float:
        """ids (B, T) -> (B, T, D), with their vectors from `tokens`."""
        check_shape(ids)
        at = layout_of(at, ids.shape[0], ids.shape[1], ids.device)
        must_be("trace", trace, Trace | None, "gn.Trace()")
        if self.position is not None and not torch.compiler.is_compiling():
            self.position.check(at)
        if at.doc is not None:
            ids = ids.masked_fill(~at.real, 0)  # whatever id stands in a padded slot, nothing reads it
        x = tokens(ids)
        if types is not None:
            check_shape(types)
            if types.shape != ids.shape:
                raise BadValue(f"token types have the shape of the ids {tuple(ids.shape)}, got {tuple(types.shape)}")
        if self.types is not None:
            x = x + self.types(torch.zeros_like(ids) if types is None else types)
        elif types is not None:
            raise BadValue("token types were given but this layer has no table for them: build it with n_types")
        p = None if self.position is None else self.position.vectors(at, position_dtype(x.dtype))
        if trace is not None:
            trace.tokens, trace.position = x.detach(), None if p is None else p.detach()
        if p is not None:
            p = p.to(x.dtype)
            x = x + p if self.project is None else self.project(torch.cat([x, p.expand(len(x), -1, -1)], -1))
        x = self.drop(x if self.norm is None else self.norm(x))
        return x if self.enter is None else self.enter(x)


class InputLayer(InputEmbedding):
    """Token vectors with their positions: `InputLayer(50000, 512, position="sinusoidal", dropout=0.1)`.

    An encoding that acts in attention ("rope", "alibi", "t5", "none") adds nothing here.
    """

    @check_arguments
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
        d_input: int | None = None,
        n_types: int = 0,
        std: float | None = None,
    ) -> None:
        """scale, padding_id, d_embed, std: of the token table, see TokenEmbedding. The rest: see InputEmbedding."""
        width = d_model if d_input is None else d_input
        tokens = TokenEmbedding(vocab_size, width, scale, padding_id, d_embed, std)
        super().__init__(
            width,
            position=position,
            max_positions=max_positions,
            combine=combine,
            position_dim=position_dim,
            norm=norm,
            norm_eps=norm_eps,
            dropout=dropout,
            n_types=n_types,
            size=tokens.size,
            d_output=None if d_input is None else d_model,
        )
        self.tokens = tokens

    @torch.no_grad()
    def sizes(self, T: int = 64) -> tuple[float, float | None]:
        """Root mean square of the token vectors and of those of positions 0..T-1 (None: none are added), as they are
        now: not with the weights of a text, but over the whole table."""
        rows = self.tokens.weight.shape[0]
        at_once = range(0, rows, 4096)
        ids = (torch.arange(i, min(i + 4096, rows), device=self.tokens.weight.device)[None] for i in at_once)
        squares = sum(float(self.tokens(some).cpu().double().square().sum()) for some in ids)
        tokens = squares / (rows * self.tokens.d_model)
        if self.position is None:
            return tokens**0.5, None
        most = getattr(self.position, "max_positions", T)
        p = self.position.vectors(Layout.dense(1, min(T, most), self.tokens.weight.device))
        return tokens**0.5, None if p is None else float(p.cpu().double().square().mean().sqrt())

    def balance(self) -> str:
        """What to know where token and position enter at sizes that differ more than UNBALANCED times; "" otherwise."""
        tokens, position = self.sizes()
        if position is None or not min(tokens, position) * UNBALANCED < max(tokens, position):
            return ""
        times = max(tokens, position) / max(min(tokens, position), 1e-30)
        return message(
            "encodings", "unbalanced", tokens=f"{tokens:.2g}", position=f"{position:.2g}", times=f"{times:.2g}"
        )

    def forward(
        self, ids: Int, at: Layout | None = None, types: Int | None = None, trace: Trace | None = None
    ) -> Float:
        """ids (B, T) -> (B, T, D). `at` says where the tokens sit (default 0..T-1); `types` (B, T) their segments."""
        return self.embed(self.tokens, ids, at, types, trace)


def build_at_input(
    position: str | Spec | PositionEncoding, d_model: int, max_positions: int | None, size: float
) -> PositionEncoding | None:
    """The module if this encoding acts at the input, else None. What it draws has this size."""
    if isinstance(position, PositionEncoding):
        return position if position.acts == "input" else None
    spec = get(position) if isinstance(position, str) else position
    if spec.acts != "input":
        return None
    rows: dict[str, int] = {} if max_positions is None else {"max_positions": max_positions}
    return spec.build(d_model=d_model, std=size, **rows)


__all__ = ["Combine", "InputEmbedding", "InputLayer", "InputSettings"]
