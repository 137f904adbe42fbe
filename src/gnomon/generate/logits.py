"""Processors: pure functions on the logits (B, V) from which the next token of each row is drawn.

Wherever several are used their order is

    forbid                                   what stands for no token at all: padding, ids without text
    repetition -> presence_frequency         penalties: they reshape the model's distribution
    no_repeat -> unwritten -> forbid -> only bans: n-grams, bad words, end tokens before the least length, a callback
    forced                                   a beginning that is given; it overrules the bans
    temperature -> top_k -> top_p -> min_p   the strategy's own

each working on what the one before it left. Penalties and bans read the row's own history: its prompt and what was
written after it, never a source and never another row. `gnomon.generate.rules` applies all but the strategy's own.

Temperature comes before what cuts off, as in Hugging Face's library; llama.cpp has it last. It matters: at
temperature 2 the probabilities [.5, .25, .15, .1] become [.37, .26, .20, .17], of which min_p = 0.4 keeps all four;
before the temperature it would have kept two. The strategy's own take one value for all rows or one per row, leave
every row at least its best token, and break ties for the lower id.
"""

import math
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from gnomon.errors import BadValue
from gnomon.shapes import Float, Int


class History(NamedTuple):
    """What a row has read and written when its next token is to be chosen."""

    row: int  #: the number of its prompt
    prompt: Sequence[int]
    new: Sequence[int]

    @property
    def ids(self) -> list[int]:
        """All of it."""
        return [*self.prompt, *self.new]


PerRow = float | Sequence[float] | Tensor  #: one value for all rows, or (B,) of them


def forbid(logits: Float, ids: Int) -> Float:
    """Take the tokens `ids` (N,) out of every row."""
    return logits.index_fill(-1, ids, -math.inf) if len(ids) else logits


def repetition(logits: Float, histories: Sequence[History], penalty: float) -> Float:
    """Make every token that stands in the row's history, its prompt included, less likely: a positive logit is divided
    by the penalty, a negative one multiplied. Once for each token, however often it stands there. 1 changes nothing.

    Keskar et al. 2019 (CTRL), arXiv:1909.05858, section 4.1, which divides; a negative logit would rise by that.
    """
    seen = _count_ids(logits, [h.ids for h in histories]) > 0
    return torch.where(seen, torch.where(logits > 0, logits / penalty, logits * penalty), logits)


def presence_frequency(logits: Float, histories: Sequence[History], presence: float, frequency: float) -> Float:
    """Take from each token's logit `presence` if it was written before, and `frequency` for each time it was. Only new
    tokens count, not the prompt. Negative penalties invite repetition."""
    counts = _count_ids(logits, [h.new for h in histories])
    return logits - (counts > 0) * presence - counts * frequency


def no_repeat(logits: Float, histories: Sequence[History], n: int) -> Float:
    """Take out every token with which the row would hold the same n tokens in a row twice, its prompt included.

    Paulus et al. 2018, arXiv:1705.04304, section 2.5, for any n.
    """
    return _without(logits, [_completions(h.ids, n) for h in histories])


def forbid_incomplete(logits: Float, histories: Sequence[History], words: Iterable[Sequence[int]]) -> Float:
    """Take out every token that would complete one of the token sequences `words`, also one begun in the prompt."""
    listed = [list(word) for word in words]
    return _without(logits, [[word[-1] for word in listed if _ends_with(h.ids, word[:-1])] for h in histories])


def restrict(logits: Float, allowed: Sequence[Iterable[int] | None]) -> Float:
    """Leave each row the tokens that are allowed to it; None allows everything."""
    keep = torch.ones(logits.shape, dtype=torch.bool)
    for n, ids in enumerate(allowed):
        if ids is not None:
            keep[n] = False
            keep[n, list(ids)] = True
    return logits.where(keep.to(logits.device), -math.inf)


def force(logits: Float, free: Float, ids: Sequence[int | None]) -> Float:
    """Leave a row with a forced token that token alone, with its logit in `free`, where nothing was banned."""
    return torch.stack(
        [
            row if i is None else torch.full_like(row, -math.inf).index_copy(0, at, whole[at])
            for row, whole, i in zip(logits, free, ids, strict=True)
            for at in [torch.tensor([i or 0], device=logits.device)]
        ]
    )


def temperature(logits: Float, t: PerRow) -> Float:
    """Divide by t >= 0: above 1 flatter, below 1 sharper, 0 the best token alone.

    The best logit is moved to 0 first, which changes no probability, so that nothing overflows however small t is.
    """
    t = _per_row("temperature", t, logits, 0, sys.float_info.max).to(logits.dtype)
    best = logits.max(-1, keepdim=True)
    alone = torch.full_like(logits, -math.inf).scatter(-1, best.indices, 0.0)
    return torch.where(t > 0, (logits - best.values) / t.where(t > 0, 1.0), alone)


def top_k(logits: Float, k: PerRow) -> Float:
    """Keep the k >= 1 best tokens, exactly k whatever the ties; all of them where k > V.

    Fan et al. 2018, arXiv:1805.04833, section 5.
    """
    k = _per_row("top_k", k, logits, 1, math.inf)
    if bool((k != k.floor()).any()):
        raise BadValue(f"top_k counts tokens, so it is a whole number; got {k.flatten().tolist()}")
    k = k.clamp(max=logits.shape[-1]).long()
    kth = logits.topk(int(k.max()), -1).values.gather(-1, (k - 1).expand(len(logits), 1))  # (B, 1) the least to keep
    above, tied = logits > kth, logits == kth
    room = k - above.sum(-1, keepdim=True)
    return logits.where(above | (tied & (tied.cumsum(-1) <= room)), -math.inf)


def top_p(logits: Float, p: PerRow) -> Float:
    """Keep the smallest set of best tokens whose probabilities reach p in sum: one token at 0, all of them at 1.

    The nucleus of Holtzman et al. 2020, arXiv:1904.09751, equation 2.
    """
    p = _per_row("top_p", p, logits, 0, 1)
    ordered = logits.sort(dim=-1, descending=True, stable=True)
    probabilities = ordered.values.softmax(-1)
    before = cumulative(probabilities) - probabilities  # the mass of all better tokens
    keep = (before < p) | (p == 1)
    keep[:, 0] = True
    return logits.where(torch.zeros_like(keep).scatter(-1, ordered.indices, keep), -math.inf)


def min_p(logits: Float, p: PerRow) -> Float:
    """Keep the tokens at least p times as probable as the best one; all of them at 0.

    Nguyen et al. 2024, arXiv:2407.01082, section 3.
    """
    p = _per_row("min_p", p, logits, 0, 1)
    return logits.where((logits - logits.amax(-1, keepdim=True)).exp() >= p, -math.inf)


def inverse_cdf(logits: Float, u: Float) -> Int:
    """The token at which the cumulated probability of its row first exceeds u (B,) in [0, 1): ids (B,).

    For uniform u this draws from softmax(logits); a token at -inf is never drawn.
    """
    mass = cumulative(logits.softmax(-1))
    total, u = mass[:, -1:], u[:, None].to(mass.dtype).to(mass.device)
    below = torch.nextafter(total, torch.zeros_like(total))  # u * total may round up to total, which no mass exceeds
    return torch.searchsorted(mass, torch.minimum(u * total, below), right=True)[:, 0]


def cumulative(probabilities: Float) -> Float:
    """Running sums along V in float64, in float32 on devices that have no float64."""
    return probabilities.cumsum(-1, dtype=_widest(probabilities))


def _count_ids(logits: Float, ids: Sequence[Sequence[int]]) -> Float:
    """(B, V) how often each token stands in `ids`, a list per row."""
    counts = torch.zeros(logits.shape)
    for n, row in enumerate(ids):
        counts[n] = torch.bincount(torch.tensor(row, dtype=torch.long), minlength=logits.shape[1])
    return counts.to(logits.device, logits.dtype)


def _without(logits: Float, ids: Sequence[Sequence[int]]) -> Float:
    """Every row without its own list of tokens."""
    rows = [n for n, row in enumerate(ids) for _ in row]
    columns = [i for row in ids for i in row]
    at = (torch.tensor(rows, dtype=torch.long), torch.tensor(columns, dtype=torch.long))
    ban = torch.zeros(logits.shape, dtype=torch.bool).index_put(at, torch.tensor(True))
    return logits.masked_fill(ban.to(logits.device), -math.inf)


def _completions(ids: Sequence[int], n: int) -> list[int]:
    """The tokens that followed the last n - 1 ids wherever those stood before."""
    begun = list(ids[len(ids) - n + 1 :])
    starts = range(len(ids) - n + 1)
    return [ids[i + n - 1] for i in starts if list(ids[i : i + n - 1]) == begun]


def _ends_with(ids: list[int], beginning: list[int]) -> bool:
    return len(ids) >= len(beginning) and ids[len(ids) - len(beginning) :] == beginning


def _per_row(name: str, value: PerRow, logits: Float, low: float, high: float) -> Tensor:
    """One number (1, 1) or one per row (B, 1); BadValue for another count, or a number not in [low, high]."""
    column = torch.as_tensor(value, dtype=torch.float64).reshape(-1, 1)  # on the CPU: checking waits for no device
    if len(column) not in (1, len(logits)):
        raise BadValue(f"{name} is one number, or one for each of the {len(logits)} rows; got {len(column)} of them")
    if not bool(((column >= low) & (column <= high)).all()):
        limits = f"at least {low}" if high > 1 else f"between {low} and {high}"
        raise BadValue(f"{name} must be {limits}, got {value}")
    return column.to(_widest(logits)).to(logits.device)


def _widest(x: Tensor) -> torch.dtype:
    """float64, or float32 on a device that has no float64."""
    return torch.float32 if x.device.type == "mps" else torch.float64


__all__ = [
    "History",
    "PerRow",
    "cumulative",
    "forbid",
    "forbid_incomplete",
    "force",
    "inverse_cdf",
    "min_p",
    "no_repeat",
    "presence_frequency",
    "repetition",
    "restrict",
    "temperature",
    "top_k",
    "top_p",
]
