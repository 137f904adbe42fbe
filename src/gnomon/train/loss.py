"""Next-token loss. Labels are shifted once, here; which tokens have one is read from the Layout, not from the ids.

    loss = sum over targets of -log p(id[t+1] | id[..t]);   the mean is over targets, never over rows or batches

So an end-of-text id that doubles as padding is still a target where the text really ends, no row teaches another, and
losses of batches with different numbers of targets add up. An encoder-decoder's target goes through the same shift: it
reads start, y0, y1 and guesses y0, y1, end (`next_token_labels` of start, y0, y1, end).
"""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from gnomon.errors import BadValue
from gnomon.layout import Layout
from gnomon.models import Model
from gnomon.shapes import Bool, Float, Int

IGNORE = -100


@dataclass(frozen=True)
class Loss:
    """A sum in nats and how many targets it is over; two of them add up to the loss of both."""

    total: Float  # scalar
    count: Int  # scalar

    @property
    def mean(self) -> Float:
        """Nats per target; 0, with zero gradient, where there is none."""
        return self.total / self.count.clamp(min=1)

    def __add__(self, other: "Loss") -> "Loss":
        return Loss(self.total + other.total, self.count + other.count)

    def detach(self) -> "Loss":
        """The same numbers without their graph."""
        return Loss(self.total.detach(), self.count)


def next_token_labels(ids: Int, at: Layout) -> Int:
    """(B, T) labels: the next token of the same document, IGNORE where there is none (last token, padding)."""
    labels = torch.full_like(ids, IGNORE)
    labels[:, :-1] = torch.where(same_document(at), ids[:, 1:], IGNORE)
    return labels


def same_document(at: Layout) -> Bool:
    """(B, T-1): whether token t+1 continues the document of token t."""
    if at.doc is None:
        return torch.ones_like(at.pos[:, 1:], dtype=torch.bool)
    return (at.doc[:, 1:] == at.doc[:, :-1]) & (at.doc[:, 1:] >= 0)


def cross_entropy(logits: Float, labels: Int, smoothing: float = 0.0, padding_id: int | None = None) -> Loss:
    """logits (B, T, V) against labels (B, T), IGNORE left out; computed in float32 or wider.

    smoothing   the share of each target's probability that is spread evenly over the other classes (Szegedy et al.
                2016, arXiv:1512.00567, section 7), so that the target keeps 1 - smoothing exactly
    padding_id  a class that no token is ever meant to be: it gets nothing of what is spread
    """
    wide = (logits if logits.dtype == torch.float64 else logits.float()).flatten(0, 1)  # (B T, V)
    if smoothing:
        total = _smooth_labels(wide, labels.flatten(), smoothing, padding_id)
    else:
        total = F.cross_entropy(wide, labels.flatten(), ignore_index=IGNORE, reduction="sum")
    return Loss(total, (labels != IGNORE).sum())


def _smooth_labels(logits: Float, labels: Int, smoothing: float, padding_id: int | None) -> Float:
    """-sum_v q(v) log p(v) over labels (N,): q is 1 - smoothing on the label, the rest evenly on the other classes."""
    log_p, labels = logits.log_softmax(-1)[labels != IGNORE], labels[labels != IGNORE]
    others = torch.ones_like(log_p, dtype=torch.bool).scatter(-1, labels[:, None], False)  # (N, V)
    if padding_id is not None:
        others[:, padding_id] = False
    spread = smoothing / others.sum(-1, keepdim=True, dtype=log_p.dtype).clamp(min=1)
    own = log_p.gather(-1, labels[:, None]).sum()
    return -(1 - smoothing) * own - (spread * log_p.masked_fill(~others, 0.0)).sum()


def row_losses(logits: Float, labels: Int) -> Loss:
    """The loss of each row of logits (B, T, V) by itself: `total` and `count` are (B,)."""
    wide = logits if logits.dtype == torch.float64 else logits.float()
    nats = F.cross_entropy(wide.transpose(1, 2), labels, ignore_index=IGNORE, reduction="none")
    return Loss(nats.sum(1), (labels != IGNORE).sum(1))


def padding_of(model: nn.Module) -> int | None:
    """The padding class of a model's vocabulary, if its config names one; the model may be compiled or wrapped."""
    return next((part.config.padding_id for part in model.modules() if isinstance(part, Model)), None)


def next_token_loss(logits: Float, ids: Int, at: Layout) -> Loss:
    """The loss of a language model's logits (B, T, V) on the ids (B, T) it read."""
    return cross_entropy(logits, next_token_labels(ids, at))


def window_labels(ids: Int, at: Layout | None = None) -> Int:
    """(B, T) labels for the first T tokens of each row of ids (B, T + 1)."""
    if ids.dim() != 2 or ids.shape[1] < 2:
        raise BadValue(
            f"a training window has at least two tokens, one to read and one to guess; got shape {tuple(ids.shape)}"
        )
    at = Layout.dense(len(ids), ids.shape[1], ids.device) if at is None else at.expand(len(ids))
    return next_token_labels(ids, at)[:, :-1]


def window_loss(model: nn.Module, ids: Int, at: Layout | None = None, smoothing: float = 0.0) -> Loss:
    """The loss of a causal model on windows ids (B, T + 1): it reads the first T of each row, the last is only guessed.

    at: where the tokens sit, (B, T + 1) or one row for all; default 0..T
    """
    labels = window_labels(ids, at)
    logits = model(ids[:, :-1], None if at is None else at.tokens(slice(None, -1)))
    return cross_entropy(logits, labels, smoothing, padding_of(model) if smoothing else None)


__all__ = [
    "IGNORE",
    "Loss",
    "cross_entropy",
    "next_token_labels",
    "next_token_loss",
    "padding_of",
    "row_losses",
    "same_document",
    "window_labels",
    "window_loss",
]
