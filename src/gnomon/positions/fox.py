"""Forgetting attention (FoX; Lin, Nikishin, He and Courville 2025, arXiv:2503.02130, section 3).

    f_t      = sigmoid(w_h . x_t + b_h)                                     (equation 4)
    score_ij = q_i . k_j * scale + sum over l = j+1 .. i of log f_l         (equations 5 and 6)

Each head decides from a token's vector how much of all that came before is forgotten there, so weights fade as content
says: ALiBi is the same with gates that are constant. There is no other position. Each layer has gates of its own. Loss
stays flat past the training length. Causal: ahead of a query nothing has been forgotten yet; the tokens of a
bidirectional prefix fade alike to both sides. Used by the authors' models and in flash-linear-attention.

The sum is a difference of two running sums, each over a token's own document; the running sum is what a cache keeps of
a token, so that tokens that are no longer held still count. It is kept in float64 where the device has it: what lies
before both tokens cancels, however long it is.
"""

import torch
from torch import nn
from torch.nn import functional as F

from gnomon.device import autocast_type
from gnomon.errors import BadValue, check_arguments
from gnomon.glossary import message
from gnomon.layout import ORDERED, Layout
from gnomon.positions.base import PositionEncoding
from gnomon.positions.hooks import Side, Tables, of_layer, position_dtype
from gnomon.shapes import Bool, Float, Int


class FoX(PositionEncoding):
    """A forget gate per token and head; what is between a query and a key makes the key fade."""

    name = "fox"
    paper = "Lin et al. 2025, arXiv:2503.02130"
    cite = """@misc{lin2025forgetting,
      title = {Forgetting Transformer: Softmax Attention with a Forget Gate},
      author = {Lin, Zhixuan and Nikishin, Evgenii and He, Xu Owen and Courville, Aaron},
      year = {2025}, eprint = {2503.02130}, archivePrefix = {arXiv}, url = {https://arxiv.org/abs/2503.02130},
    }"""
    used_by = "the authors' models"
    acts = "attention"
    relative = True
    order_only = True
    extrapolation = "flat"
    one_sided = True

    @check_arguments
    def __init__(
        self, d_model: int, d_head: int, n_heads: int, n_layers: int = 1, start: float = 0.0, std: float = 0.02
    ) -> None:
        """start: b as it begins; 0 halves a weight at every token, 5 keeps 99 percent of it. std: of w as it begins."""
        super().__init__()
        if min(d_model, d_head, n_heads, n_layers) < 1:
            raise BadValue(
                f"fox needs sizes of at least 1; got d_model={d_model}, d_head={d_head}, n_heads={n_heads}, "
                f"n_layers={n_layers}"
            )
        self.d_model, self.d_head, self.n_heads, self.n_layers = d_model, d_head, n_heads, n_layers
        self.start, self.std, self.state_width, self.pair_width = start, std, n_heads, 4 * n_heads
        self.weight = nn.Parameter(torch.empty(n_layers, n_heads, d_model))
        self.shift = nn.Parameter(torch.empty(n_layers, n_heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the gates anew."""
        nn.init.normal_(self.weight, std=self.std)
        nn.init.constant_(self.shift, self.start)

    def heads(self) -> int:
        """How many heads have gates."""
        return self.n_heads

    def of_layer(self, tables: Tables, n: int) -> Tables:
        """w (H, D) and b (H,) of a layer."""
        return of_layer(self.weight, n), of_layer(self.shift, n)

    def state(self, x: Float, tables: Tables, at: Layout, held: tuple[Float, Layout] | None = None) -> Float:
        """(B, H, T, 1) the sum of log f over a token's document, up to the token itself."""
        assert tables is not None
        at, dtype = at.expand(x.shape[0]), position_dtype(x.dtype)
        with torch.autocast(autocast_type(x.device), enabled=False):
            weight, shift = (table.to(dtype) for table in tables)
            log_f = F.logsigmoid(F.linear(x.to(dtype), weight, shift)).transpose(1, 2)  # (B, H, T)
        log_f = log_f.to(dtype if x.device.type == "mps" else torch.float64)
        total = running_sum(log_f.masked_fill(~at.real[:, None], 0.0), at)
        if held is not None:
            total = total + _before(*held, at)
        return total.masked_fill(~at.real[:, None], 0.0)[..., None]

    def scores(self, q: Side, k: Side, tables: Tables, ok: Bool, scale: float) -> Float:
        """Equation 6: what was forgotten in between lowers the score."""
        if q.state is None or k.state is None:
            raise BadValue(
                "fox forgets by the vectors of tokens, which attention alone does not see: use "
                "gn.MultiHeadAttention(...)(x, position), or give Content(tables, q, k) with what position.state gives"
            )
        forgotten = (q.state - k.state.transpose(-1, -2)).abs()
        return q.x @ k.x.transpose(-1, -2) * scale - forgotten.to(q.x.dtype)

    @torch.no_grad()
    def describe(self, trained: int | None = None) -> list[str]:
        """The gates, by what they keep where a vector says nothing."""
        low, high = (float(f) for f in self.shift.float().sigmoid().aminmax())
        one = message("encodings", "fox_keeps_one", kept=low)
        keeps = one if f"{low:.3g}" == f"{high:.3g}" else message("encodings", "fox_keeps", low=low, high=high)
        lines: list[str] = [message("encodings", "fox", heads=self.n_heads, width=self.d_model), keeps]
        return lines if trained is None else [*lines, message("encodings", "fox_twice")]

    def extra_repr(self) -> str:
        """Shown by print(module)."""
        return f"d_model={self.d_model}, n_heads={self.n_heads}, n_layers={self.n_layers}"


def running_sum(x: Float, at: Layout) -> Float:
    """x (B, H, T) -> of every token the sum over its document up to itself, in time order.

    Elsewhere than in dense and placed layouts tokens are put into order by document and time, and sums of 1, 2, 4, ...
    tokens are joined within a document: what stands in another one changes not a bit.
    """
    if at.kind in ORDERED or x.shape[-1] < 2:
        return x.cumsum(-1)
    doc = at.real.long() - 1 if at.doc is None else at.doc
    order = (doc * (at.step.amax(1, keepdim=True) + 1) + at.step).argsort(dim=1, stable=True)
    doc, total = doc.gather(1, order), _along(x, order)
    n = 1
    while n < x.shape[-1]:
        same = (doc[:, n:] == doc[:, :-n])[:, None]
        total = total + F.pad(total[..., :-n].masked_fill(~same, 0.0), (n, 0))
        n *= 2
    return _along(total, order.argsort(1))


def _before(state: Float, held: Layout, at: Layout) -> Float:
    """(B, H, T) of every token the running sum (B, H, S, 1) at the newest held one of its document, 0 without any."""
    if held.kind in ORDERED and at.kind in ORDERED:
        return state[:, :, -1]
    held = held.expand(at.shape[0])
    same = held.real[:, None, :]  # (B, T, S)
    if held.doc is not None or at.doc is not None:
        docs = (torch.zeros_like(x.step) if x.doc is None else x.doc for x in (at, held))
        same = same & (next(docs)[:, :, None] == next(docs)[:, None, :])
    newest = torch.where(same, held.step[:, None], -1).max(-1)
    return _along(state[..., 0], newest.indices).masked_fill((newest.values < 0)[:, None], 0.0)


def _along(x: Float, index: Int) -> Float:
    """x (B, H, S), index (B, T) -> (B, H, T)."""
    return x.gather(-1, index[:, None].expand(-1, x.shape[1], -1))


__all__ = ["FoX", "running_sum"]
